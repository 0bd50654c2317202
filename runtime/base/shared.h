/**
 * One copy of what many hold: a store's name, the node that leads a thousand elections, how each of
 * them is configured. What is shared is never changed.
 */
#ifndef CROWN_BASE_SHARED_H
#define CROWN_BASE_SHARED_H

#include <stddef.h>

/**
 * Finds the copy of these bytes, or makes it.
 * @return the copy, aligned for any type, to be given back with shared_release; NULL when memory is
 * out.
 */
const void *shared_hold(const void *bytes, size_t size);

/** The same for a text. @return NULL also where `text` is NULL. */
const char *shared_text(const char *text);

/** Gives back what one call has returned; the last frees it. Harmless with NULL. */
void shared_release(const void *bytes);

#endif

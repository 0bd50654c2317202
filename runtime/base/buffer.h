/**
 * Bytes that grow at the end and go at the front.
 */
#ifndef CROWN_BASE_BUFFER_H
#define CROWN_BASE_BUFFER_H

#include <stddef.h>

/** Zero-initialise before first use. */
struct buffer {
    char *bytes;
    size_t size, room;
};

/** @return 0, or -1 when memory is out: then nothing has changed. */
int buffer_append(struct buffer *buffer, const char *bytes, size_t size);
/** Takes bytes off the front. */
void buffer_drop(struct buffer *buffer, size_t size);
void buffer_free(struct buffer *buffer);

#endif

/**
 * The end of what a command has written: so many bytes at most, in a ring.
 */
#ifndef CROWN_CHILD_TAIL_H
#define CROWN_CHILD_TAIL_H

#include <stddef.h>
#include <stdint.h>

/** Embed it; zero-initialise before first use: it keeps nothing. */
struct tail {
    char *bytes; /* NULL: nothing is kept */
    size_t room, size;
    size_t first;   /* where the oldest byte stands */
    uint64_t total; /* bytes that were written, with those that are gone */
};

/** Begins anew, with room for `room` bytes; 0: nothing is kept. Out of memory, nothing is. */
void tail_begin(struct tail *tail, size_t room);

/** Adds bytes; the oldest ones make room for them. */
void tail_add(struct tail *tail, const char *bytes, size_t size);

/** Copies all of it, in order, to `out`, which has room for `size` bytes of it. */
void tail_copy(const struct tail *tail, char *out);

void tail_free(struct tail *tail);

#endif

/**
 * The bytes that a stream has brought and nobody has taken yet, and what the read under way waits
 * for.
 */
#ifndef CROWN_NET_INTAKE_H
#define CROWN_NET_INTAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/** The most that one read may ask for, and the longest line. */
#define STREAM_READ_MAX (1u << 20)

enum stream_read { STREAM_LINE, STREAM_EXACT, STREAM_SOME, STREAM_ALL };

/** Zero-initialise before first use. */
struct intake {
    struct buffer bytes;
    size_t taken; /* at the front, to be dropped at the next call */
    enum stream_read kind;
    size_t wanted;
};

/** Begins a read. @param size for STREAM_EXACT: how many bytes. */
void intake_want(struct intake *intake, enum stream_read kind, size_t size);
/** @return whether what is there is enough; of what ends, anything is. */
bool intake_is_enough(const struct intake *intake);
/** @return 0, or -1 when memory is out. */
int intake_add(struct intake *intake, const char *bytes, size_t size);

/**
 * Takes what the read found.
 * @param bytes valid until the next call.
 * @param peer for errors.
 * @return how many; 0 when there is nothing, though something was wanted; -1 with `err`,
 * ERROR_PROTOCOL: more than a read may bring.
 */
ptrdiff_t intake_take(struct intake *intake, const char **bytes, const char *peer,
                      struct crown_error *err);

/** @return whether there is something that nobody has taken. */
bool intake_is_left(const struct intake *intake);
void intake_forget(struct intake *intake);
void intake_free(struct intake *intake);

#endif

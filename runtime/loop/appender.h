/**
 * Appends to a file that several processes share, from a thread: a disk that hangs holds nobody.
 * The first line is written at once; what comes within a tenth of a second after it is one write.
 */
#ifndef CROWN_LOOP_APPENDER_H
#define CROWN_LOOP_APPENDER_H

#include <stddef.h>
#include <sys/types.h>

#include "loop/loop.h"

struct appender;

/** The most bytes that wait for a disk; what comes then is dropped. */
#define APPENDER_WAITING_MOST (256 * 1024)

/**
 * @param path copied.
 * @param most bytes; a file that has grown so long becomes PATH.1 before the next write.
 * @return NULL when memory is out.
 */
struct appender *appender_new(struct loop *loop, const char *path, off_t most);

/** Adds text, whole lines: it is written soon, also where the loop does not turn any more. */
void appender_add(struct appender *appender, const char *text, size_t size);

/** Writes what waits, unless the disk takes longer than a second, and frees. NULL is fine. */
void appender_close(struct appender *appender);

#endif

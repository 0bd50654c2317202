/**
 * Standard error, for lines of the log: written without ever waiting for who reads it. A pager that
 * was left open, a stopped terminal or a stuck log collector must not hold up a process that others
 * rely on.
 */
#ifndef CROWN_BASE_SINK_H
#define CROWN_BASE_SINK_H

#include <stdbool.h>
#include <stddef.h>

#define SINK_LINE_MOST 8192

/**
 * Writes a line, of at most SINK_LINE_MOST bytes, to standard error. What the other side has no
 * room for is kept, and goes out before the next line.
 * @return false when nothing of it was taken: it is lost.
 */
bool sink_write(const char *line, size_t length);

#endif

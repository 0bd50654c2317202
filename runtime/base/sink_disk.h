/**
 * Standard error where it is a file. No flag keeps write(2) from waiting for a disk that hangs, so
 * a thread of its own writes, and nobody waits long for it. What comes while it hangs, is full, or
 * is late on a busy machine waits; the end of the process waits a second for it.
 */
#ifndef CROWN_BASE_SINK_DISK_H
#define CROWN_BASE_SINK_DISK_H

#include <stddef.h>
#include <sys/types.h>

#define SINK_DISK_WAITING_MOST 65536 /* bytes */

/**
 * Writes; on a disk that works, it is done when this returns. From one thread alone.
 * @param length SINK_LINE_MOST at the most.
 * @return how many bytes were taken; -1 with EAGAIN when so many wait that there is no room.
 */
ssize_t sink_disk_write(const char *bytes, size_t length);

#endif

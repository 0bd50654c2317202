/**
 * Which descriptors a process begins with.
 */
#ifndef CROWN_PROCESS_FDS_H
#define CROWN_PROCESS_FDS_H

#include <stdbool.h>

/**
 * Opens /dev/null for each standard stream that is missing, as after a shell's `<&-`: else the next
 * descriptors opened would pass for standard streams in every child.
 * @return 0, or -1 with errno.
 */
int fds_open_standard(void);

/** Whether standard output was one of them: what is printed there reaches nobody. */
bool fds_output_was_missing(void);

/** Has every descriptor from 3 up close at an exec. */
void fds_close_at_exec(void);

/** Closes every descriptor from 3 up, except the `count` ones in `keep` (at most 32). */
void fds_close_except(const int *keep, unsigned count);

#endif

/**
 * Which descriptors a freshly forked process keeps.
 */
#ifndef CROWN_PROCESS_FDS_H
#define CROWN_PROCESS_FDS_H

/** Closes every descriptor from 3 up, except the `count` ones in `keep` (at most 32). */
void fds_close_except(const int *keep, unsigned count);

#endif

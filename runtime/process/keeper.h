/**
 * One per child: holds its deadline and kills its whole tree, with no help from the runtime. See
 * docs/processes.md.
 */
#ifndef CROWN_PROCESS_KEEPER_H
#define CROWN_PROCESS_KEEPER_H

#include <sys/types.h>

/**
 * Runs a keeper in the process that the supervisor has just forked; does not return.
 * @param runtime_fd the line to the runtime; its end of file means: kill the tree now.
 * @param fds the spec's memfd first, then what the spec names.
 * @param supervisor its pid: when it dies, the tree dies.
 */
void keeper_run(int runtime_fd, const int *fds, unsigned nfds, pid_t supervisor)
    __attribute__((noreturn));

#endif

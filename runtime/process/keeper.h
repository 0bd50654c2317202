/**
 * One per child: holds its deadline and kills its whole tree, with no help from the runtime. See
 * docs/processes.md.
 */
#ifndef CROWN_PROCESS_KEEPER_H
#define CROWN_PROCESS_KEEPER_H

#include <sys/types.h>

/** Where a keeper was forked. */
struct keeper_home {
    pid_t supervisor; /* when it dies, the tree dies */
    pid_t *warden;    /* where the supervisor finds the warden, as warden_start says */
};

/**
 * Runs a keeper in the process that the supervisor has just forked; does not return.
 * @param runtime_fd the line to the runtime; its end of file means: kill the tree now.
 * @param fds the spec's memfd first, then what the spec names.
 */
void keeper_run(int runtime_fd, const int *fds, unsigned nfds, const struct keeper_home *home)
    __attribute__((noreturn));

#endif

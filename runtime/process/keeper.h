/**
 * One per child: holds its deadline and kills its whole tree, with no help from the runtime. See
 * docs/processes.md.
 */
#ifndef CROWN_PROCESS_KEEPER_H
#define CROWN_PROCESS_KEEPER_H

#include <sys/types.h>

#include "process/warden.h"

/* A keeper's exit codes. Of one that ends with another, or by a signal, a tree may be left. */
#define KEEPER_TOLD 0   /* it has said GONE, or was given no child */
#define KEEPER_UNTOLD 2 /* its tree is gone, and that could not be said */

/** Where a keeper was forked. */
struct keeper_home {
    pid_t supervisor;           /* when it dies, the tree dies */
    struct warden_note *warden; /* where the supervisor finds the warden, as warden_start says */
};

/**
 * Runs a keeper in the process that the supervisor has just forked; does not return.
 * @param fds the line to the runtime first, whose end of file means: kill the tree now; then the
 * spec's memfd, then what the spec names.
 */
void keeper_run(const int *fds, unsigned nfds, const struct keeper_home *home)
    __attribute__((noreturn));

/** The same for a child that is not known yet: with its warden it waits for START_KEEPER.
 * @param line where that comes from, with the descriptors; at its end the process ends. */
void keeper_wait(int line, const struct keeper_home *home) __attribute__((noreturn));

#endif

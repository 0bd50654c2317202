/**
 * The child's parent. It reaps, passes signals on, and kills what is left of the tree when the
 * child ends or the keeper dies. In `tree` isolation it is a subreaper; in `pidns` isolation it is
 * process 1 of the namespace, and the kernel kills the whole namespace with it.
 */
#ifndef CROWN_PROCESS_WARDEN_H
#define CROWN_PROCESS_WARDEN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "process/child_spec.h"

/** What a warden shares with its keeper and the supervisor. */
struct warden_note {
    pid_t pid;                   /* 0: there is none */
    _Atomic int64_t deadline_ns; /* of its dead-man timer; TIME_NEVER: none */
};

/**
 * Forks the warden, which starts the child and reports to `*keeper_end`: STARTED, or START_FAILED;
 * then EXITED. It understands SET_DEADLINE (there is another one in the note) and SIGNAL (`status`
 * 1: to the child's whole group). While it starts the child it reads nothing, and the keeper's end
 * is its own.
 * @param spec NULL: it waits for START_CHILD, in `tree` isolation only. The warden releases its
 * copy.
 * @param fds what the spec names.
 * @param note is given its pid by the kernel before it runs: the warden starts no child that nobody
 * knows the warden of. The caller sets it to 0 before it reaps the warden. Where the warden has a
 * child to start, the deadline is there before.
 * @return its pid, or -1 with `err`.
 */
pid_t warden_start(struct child_spec *spec, const int *fds, struct warden_note *note,
                   int *keeper_end, struct crown_error *err);

#endif

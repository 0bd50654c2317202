/**
 * The child's parent. It reaps, passes signals on, and kills what is left of the tree when the
 * child ends or the keeper dies. In `tree` isolation it is a subreaper; in `pidns` isolation it is
 * process 1 of the namespace, and the kernel kills the whole namespace with it.
 */
#ifndef CROWN_PROCESS_WARDEN_H
#define CROWN_PROCESS_WARDEN_H

#include <sys/types.h>

#include "base/error.h"
#include "process/child_spec.h"

/**
 * Forks the warden, which starts the child and reports to `*keeper_end`: STARTED, or START_FAILED;
 * then EXITED. It understands SET_DEADLINE (for its own dead-man timer) and SIGNAL (`status` 1: to
 * the child's whole group).
 * @param spec NULL: it waits for START_CHILD, in `tree` isolation only.
 * @param fds what the spec names.
 * @param note is given its pid by the kernel before it runs: the warden starts no child that nobody
 * knows the warden of. The caller sets it to 0 before it reaps the warden.
 * @return its pid, or -1 with `err`.
 */
pid_t warden_start(const struct child_spec *spec, const int *fds, pid_t *note, int *keeper_end,
                   struct crown_error *err);

#endif

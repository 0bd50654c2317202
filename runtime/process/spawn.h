/**
 * Starts the user's command in a clean world: its own process group, default signals, no descriptor
 * of ours, its ids, and death when its parent dies.
 */
#ifndef CROWN_PROCESS_SPAWN_H
#define CROWN_PROCESS_SPAWN_H

#include <sys/types.h>

#include "base/error.h"
#include "process/child_spec.h"

/**
 * Forks and executes; returns when the exec has succeeded or failed.
 * @param fds what came along with the spec: its stdio_fd and hold_fd index this.
 * @return the pid; or -1 with `err` ("run /bin/x: no such file or directory") and errno in
 * `*error`.
 */
pid_t spawn_child(const struct child_spec *spec, const int *fds, int *error,
                  struct crown_error *err);

#endif

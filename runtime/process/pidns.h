/**
 * A PID namespace for a child's tree: whatever it spawns dies with the namespace's first process,
 * at once and by the kernel (pid_namespaces(7)). Without privileges a user namespace comes along,
 * with only the own ids in it.
 */
#ifndef CROWN_PROCESS_PIDNS_H
#define CROWN_PROCESS_PIDNS_H

#include <sys/types.h>

#include "base/error.h"

/** @return the flags of clone(2) with which a process gets the namespaces. */
unsigned long pidns_flags(void);

/** In the new process, first thing: maps the ids and mounts a /proc of its own. @return 0, or -1
 * with `err`. */
int pidns_enter(uid_t uid, gid_t gid, struct crown_error *err);

/** @return the pid, as the host counts, of the only child of a namespace's first process; `seen`,
 * what that one sees, where it is not to be known. */
pid_t pidns_host_pid(pid_t first, pid_t seen);

#endif

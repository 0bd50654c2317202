/**
 * What this kernel, and the place where the program runs, gives to it: asked for by trying.
 */
#ifndef CROWN_PROCESS_FEATURES_H
#define CROWN_PROCESS_FEATURES_H

#include <stdbool.h>

/** @return whether a process can be held by a descriptor, and be sent signals by it: pidfd_open(2).
 */
bool features_pidfd(void);
/** @return whether all memory may be locked: mlockall(2). Unlocks it again. */
bool features_locked_memory(void);
/** @return whether a child can have a PID namespace with a /proc of its own. Forks, and waits for
 * the fork's end. */
bool features_pid_namespaces(void);

#endif

/**
 * What makes a supervisor, keeper or warden be on time on a starved host: real-time priority,
 * locked memory, and no attention from the OOM killer. None of it reaches the runtime or the child.
 */
#ifndef CROWN_PROCESS_REALTIME_H
#define CROWN_PROCESS_REALTIME_H

#include <stdbool.h>
#include <sys/types.h>

/** Takes what is allowed. @return whether this process now runs at real-time priority. */
bool realtime_enter(void);

/** The same in a process that one which entered has forked: what the fork has reset. */
void realtime_enter_again(void);

/**
 * As waitpid(2), for processes that have real-time priority. They leave it while the kernel
 * releases a dead process. Where somebody looks into that one's /proc it waits for him, and lets
 * only others of real-time priority run meanwhile: on one processor that takes a second, or for
 * ever where no time is set apart for the rest (sched_rt_runtime_us in sched(7)).
 * @param which a pid; -1: any child.
 */
pid_t realtime_wait(pid_t which, int *status, int options);

/**
 * The same for any child of a process that has to keep up with them. At ordinary priority others
 * may have the processor, and more children die than are reaped: the first ones in a row only.
 * @param before how many have been reaped in this row.
 */
pid_t realtime_reap(int *status, int options, unsigned before);

/** Locks what memory this process has and will touch, where allowed. Not inherited by fork:
 * mlockall(2). @return whether it was. */
bool realtime_lock_memory(void);

/** After fork, in a process that is none of ours: gives the OOM score and the niceness back that
 * the supervisor was started with (the real-time priority resets by itself). */
void realtime_leave(void);

#endif

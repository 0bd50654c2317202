/**
 * What makes a supervisor, keeper or warden be on time on a starved host: real-time priority,
 * locked memory, and no attention from the OOM killer. None of it reaches the runtime or the child.
 */
#ifndef CROWN_PROCESS_REALTIME_H
#define CROWN_PROCESS_REALTIME_H

#include <stdbool.h>

/** Takes what is allowed. @return whether this process now runs at real-time priority. */
bool realtime_enter(void);

/** The same in a process that one which entered has forked: what the fork has reset. */
void realtime_enter_again(void);

/** Locks what memory this process has and will touch, where allowed. Not inherited by fork:
 * mlockall(2). @return whether it was. */
bool realtime_lock_memory(void);

/** After fork, in a process that is none of ours: gives the OOM score and the niceness back that
 * the supervisor was started with (the real-time priority resets by itself). */
void realtime_leave(void);

#endif

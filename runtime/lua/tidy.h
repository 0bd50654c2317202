/**
 * After thousands of tasks at once, or of elections that begin: what they have left
 * behind goes back to the system, a little in each turn of the loop. Not after each such burst: a
 * runtime with a hundred thousand leases has one several times a second, and little is left of it.
 */
#ifndef CROWN_LUA_TIDY_H
#define CROWN_LUA_TIDY_H

#include "loop/loop.h"

struct lua_vm;

/** Embed it; zero-initialise before first use. */
struct tidy {
    struct loop_job job;
    unsigned tasks, most; /* there are, and have been since the last time; also what begins */
    unsigned burst;       /* of them, the time before */
    unsigned cycles;      /* of the collector that are still to be completed */
    int left_kb;          /* the Lua heap after the last time, or what it has shrunk to since */
};

/** Once the Lua state is there. */
void tidy_open(struct lua_vm *vm);
/** A task, or an election that waits to begin: the heap grows by each. */
void tidy_began(struct lua_vm *vm);
void tidy_ended(struct lua_vm *vm);
/** Before the vm goes. */
void tidy_close(struct lua_vm *vm);

#endif

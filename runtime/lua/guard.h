/**
 * Keeps one task's Lua from holding the loop: after a slice of CPU time (50 ms, in a loop without a
 * wait) a hook makes it yield to the loop, and it goes on in a later turn. Lua that cannot yield
 * where it is (inside table.sort, a coroutine of its own) gets an error after half a second
 * instead. Long C calls are beyond a hook; the supervisor's heartbeat and the dead-man timers see
 * to those.
 */
#ifndef CROWN_LUA_GUARD_H
#define CROWN_LUA_GUARD_H

#include <lua.h>

#include "base/error.h"

struct lua_vm;

/** @return 0, or -1 with `err`. One vm a process: the timer's signal finds it through a static.
 */
int guard_open(struct lua_vm *vm, struct crown_error *err);
void guard_close(struct lua_vm *vm);

/** Around each resume. */
void guard_enter(struct lua_vm *vm);
void guard_leave(struct lua_vm *vm);

/** Makes debug.sethook raise: the hook of this state is the guard's. */
void guard_replace_sethook(lua_State *L);

#endif

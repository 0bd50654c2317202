/**
 * How a candidate calls its Lua object: `object:perform(kind, …)` in a task; lua/crown/elect.lua
 * says what it answers.
 */
#ifndef CROWN_CANDIDATE_PERFORM_H
#define CROWN_CANDIDATE_PERFORM_H

#include <lua.h>

#include "lua/task.h"
#include "telemetry/telemetry.h"

struct candidate;

/** @return the main Lua state, with perform, object and `kind` on its stack: ready for `more`
 * further arguments and perform_spawn. */
lua_State *perform_push(struct candidate *candidate, const char *kind);

/** @return the main Lua state, with what the object's oracle keeps of it on its stack. */
lua_State *perform_push_state(struct candidate *candidate);

/** Spawns it with `more` arguments on top. `done` gets the candidate as its context. @return NULL
 * where the scope is closed. */
struct task *perform_spawn(struct candidate *candidate, int more, struct scope *scope,
                           task_done *done);

/** Tells that one of the user's functions failed. */
void perform_failed(struct candidate *candidate, enum telemetry_event event, const char *function,
                    const char *message);

#endif

/**
 * An election's timing: as Lua says it, and as it is laid out for people and programs.
 */
#ifndef CROWN_BIND_ELECTION_TIMING_H
#define CROWN_BIND_ELECTION_TIMING_H

#include <lua.h>

#include "candidate/candidate.h"

/** Reads what crown.elect's options say of it. */
void election_timing_read(lua_State *L, int index, struct election_timing *timing);

/** election.explain(options, ttl, refresh) -> the layout as text and as a table of seconds; or nil,
 * message where the timing could overlap. */
int election_explain(lua_State *L);

#endif

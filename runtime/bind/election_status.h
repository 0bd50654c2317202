/**
 * What Lua is told of the elections of this runtime.
 */
#ifndef CROWN_BIND_ELECTION_STATUS_H
#define CROWN_BIND_ELECTION_STATUS_H

#include <lua.h>

#include "candidate/candidate.h"

/** Pushes a table: name, oracle, phase, state, leader, epoch, expires_in, next_claim_in, since,
 * terms, acting; child, child_lives_on, child_unfenced; child_code or child_signal of the leader's
 * last command; answered, away, failure of the store. */
void status_push(lua_State *L, const struct candidate *candidate);

/** election.all([skip [, most]]) -> the status of each, in the order of their making. */
int status_all(lua_State *L);
/** election.glance(skip, most) -> how many were looked at, how many of them lead and may act, and
 * the status of each whose store is away or whose command works on without leading. */
int status_glance(lua_State *L);
/** election.changed(stamp, most) -> the status of each that has changed since, or nil where that
 * cannot be told: one has ended since, or there are more than `most`. */
int status_changed(lua_State *L);
/** election.stamp() -> the stamp of the last change. */
int status_stamp(lua_State *L);
/** election.count() -> how many there are. */
int status_count(lua_State *L);
/** election.find(name) -> the status of one, or nothing where there is none of that name. */
int status_find(lua_State *L);

/** election.latency() -> bounds in seconds, and a table for each oracle function that was called:
 * `function`, `seconds` in all, and how many calls fell below each bound, the last one above all.
 */
int status_latency(lua_State *L);

#endif

/**
 * The runtime's own dead-man timer, shared by all terms that run Lua here: the kernel kills this
 * process at the earliest instant at which Lua of a term would outlive its deadline. A runtime that
 * is well has cut that Lua long before (at the term's kill instant), so the timer ends only one
 * that hangs or is stopped.
 */
#ifndef CROWN_CANDIDATE_DEADMEN_H
#define CROWN_CANDIDATE_DEADMEN_H

#include <stdint.h>

#include "base/error.h"

struct candidate;
struct deadmen;

/** @return NULL with `err`. */
struct deadmen *deadmen_new(struct crown_error *err);
void deadmen_free(struct deadmen *deadmen);

/** Takes over `candidate->deadman_ns`; TIME_NEVER takes the candidate out. O(log n), at most one
 * system call. */
void deadmen_update(struct deadmen *deadmen, struct candidate *candidate);

#endif

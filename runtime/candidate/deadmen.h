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
#include "base/heap.h"

struct deadmen;

/** @return NULL with `err`. */
struct deadmen *deadmen_new(struct crown_error *err);
void deadmen_free(struct deadmen *deadmen);

/** Sets the instant of one term, or takes it out with TIME_NEVER. O(log n), at most one system
 * call. @param term embedded in its owner, all zero before first use. */
void deadmen_set(struct deadmen *deadmen, struct heap_node *term, int64_t at_ns);

#endif

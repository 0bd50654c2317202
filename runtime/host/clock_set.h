/**
 * Notices that the wall clock was set. A hypervisor that pauses a virtual machine may stop all of
 * its clocks, so that the machine does not know that time has passed; then its guest tools, or its
 * time service, set the wall clock. Leaders ask their store at once, instead of at the next
 * refresh, but for this no more often than once a second.
 */
#ifndef CROWN_HOST_CLOCK_SET_H
#define CROWN_HOST_CLOCK_SET_H

#include <stdint.h>

#include "candidate/env.h"
#include "loop/loop.h"

struct clock_set {
    struct candidate_env *env;
    struct loop_watch watch;
    struct loop_deadline due;
    int64_t told_ns;
};

/** From now on each candidate of `env` is told. Where the kernel has no such timer, none is. */
void clock_set_begin(struct clock_set *clock_set, struct candidate_env *env);
/** Ends that; also where it has not begun. */
void clock_set_end(struct clock_set *clock_set);

#endif

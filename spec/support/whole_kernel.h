/** What the test of a keeper and the calls that are led to it share: spec/support/whole_keeper.h.
 */
#ifndef CROWN_SPEC_WHOLE_KERNEL_H
#define CROWN_SPEC_WHOLE_KERNEL_H

#include "base/clock.h"
#include "process/warden.h"
#include "whole_keeper.h"

struct whole_kernel {
    struct warden_note note;
    int64_t now_ns, timer_ns;
    int timer, signals[2];                  /* what the keeper polls, and where the test writes */
    int runtime[2], line[2], supervisor[2]; /* the keeper's end, the test's end */
    int given[5];                           /* to the keeper: its line, the spec, what that names */
};

extern struct whole_kernel kernel;

/** The timer goes off, if it is time. */
void whole_kernel_fire(void);

#endif

/**
 * The kernel keeps the deadline: a POSIX timer on CLOCK_BOOTTIME that SIGKILLs this very process,
 * also when it is stopped, spins, or blocks all signals (timer_create(2); SIGKILL cannot be held
 * back).
 */
#ifndef CROWN_PROCESS_DEADMAN_H
#define CROWN_PROCESS_DEADMAN_H

#include <stdint.h>
#include <time.h>

#include "base/error.h"

/* The caller's memory: each keeper and warden has one, and a page of a heap for it would be theirs
 * alone. */
struct deadman {
    timer_t timer;
};

/** @return 0, or -1 with `err`. Not inherited by fork: open it in the process that it shall end. */
int deadman_open(struct deadman *deadman, struct crown_error *err);
/** Arms at an instant; TIME_NEVER disarms; an instant in the past ends the process now. One system
 * call. */
void deadman_set(const struct deadman *deadman, int64_t at_ns);
void deadman_close(const struct deadman *deadman);

#endif

/**
 * The kernel keeps the deadline: a POSIX timer on CLOCK_BOOTTIME that SIGKILLs this very process,
 * also when it is stopped, spins, or blocks all signals (timer_create(2); SIGKILL cannot be held
 * back).
 */
#ifndef CROWN_PROCESS_DEADMAN_H
#define CROWN_PROCESS_DEADMAN_H

#include <stdint.h>

#include "base/error.h"

struct deadman;

/** @return NULL with `err`. Not inherited by fork: open it in the process that it shall end. */
struct deadman *deadman_open(struct crown_error *err);
/** Arms at an instant; TIME_NEVER disarms; an instant in the past ends the process now. One system
 * call. */
void deadman_set(struct deadman *deadman, int64_t at_ns);
void deadman_close(struct deadman *deadman);

#endif

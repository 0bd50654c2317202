/**
 * How fast what fails is tried again: pauses that grow from try to try, up to a bound, each with a
 * random half, which keeps many apart that failed at the same moment. Every connection that is made
 * anew goes by it, in C and, as crown.core.pace, in Lua.
 */
#ifndef CROWN_BASE_PACE_H
#define CROWN_BASE_PACE_H

#include <stdint.h>

#include "base/clock.h"
#include "base/random.h"

#define PACE_FIRST_NS (50 * NS_PER_MS)
#define PACE_MOST_NS (2 * NS_PER_S)
/** Of life prove a connection: one that dies sooner is a try that failed, and the pauses grow on.
 */
#define PACE_SETTLED_NS (2 * NS_PER_S)

struct pace {
    int64_t first_ns, most_ns, next_ns;
    struct random random;
};

/**
 * @param first_ns the first pause at most
 * @param most_ns every pause at most
 * @param seed of the random half: random_kernel(), or a number that repeats
 */
void pace_init(struct pace *pace, int64_t first_ns, int64_t most_ns, uint64_t seed);
/** @return the pause before the next try, in ns: from half of the longest possible one up to it. */
int64_t pace_next_ns(struct pace *pace);
/** What was tried is good: the next pause is a first one. */
void pace_reset(struct pace *pace);

#endif

/**
 * Backoff: how soon what failed is tried again. Pauses that grow from try to try, up to a bound,
 * each with a random half, which keeps many apart that failed at the same moment. Every connection
 * that is made anew goes by it, in C and, as crown.core.retry, in Lua.
 */
#ifndef CROWN_BASE_RETRY_H
#define CROWN_BASE_RETRY_H

#include <stdint.h>

#include "base/clock.h"
#include "base/random.h"

#define RETRY_FIRST_NS (50 * NS_PER_MS)
#define RETRY_MOST_NS (2 * NS_PER_S)
/** Of life prove a connection: one that dies sooner is a try that failed, and the pauses grow on.
 */
#define RETRY_SETTLED_NS (2 * NS_PER_S)

struct retry {
    int64_t first_ns, most_ns, next_ns;
    struct random random;
};

/**
 * @param first_ns the first pause at most
 * @param most_ns every pause at most
 * @param seed of the random half: random_kernel(), or a number that repeats
 */
void retry_init(struct retry *retry, int64_t first_ns, int64_t most_ns, uint64_t seed);
/** @return the pause before the next try, in ns: from half of the longest possible one up to it. */
int64_t retry_next_ns(struct retry *retry);
/** What was tried is good: the next pause is a first one. */
void retry_reset(struct retry *retry);

#endif

/**
 * Randomness: a seedable generator whose whole state is a field (so that a simulation repeats), and
 * the kernel's for what must not be guessed.
 */
#ifndef CROWN_BASE_RANDOM_H
#define CROWN_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

void random_seed(struct random *random, uint64_t seed);
/** @return the next 64 bits (SplitMix64: Steele, Lea, Flood 2014). */
uint64_t random_next(struct random *random);
/** @return a number from 0 to below `bound`; 0 when the bound is 0. */
uint64_t random_below(struct random *random, uint64_t bound);

/** @return 64 bits of the kernel's; aborts where getrandom(2) does not work. */
uint64_t random_kernel(void);
/** Fills `text` with `digits` hexadecimal digits of the kernel's randomness and a NUL. */
void random_token(char *text, size_t digits);

#endif

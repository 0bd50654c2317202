#include "base/random.h"

#include <stdlib.h>
#include <sys/random.h>

void random_seed(struct random *random, uint64_t seed)
{
    random->state = seed;
}

uint64_t random_next(struct random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    return bound == 0 ? 0 : random_next(random) % bound;
}

uint64_t random_kernel(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        abort(); /* up to 256 bytes are never cut short: getrandom(2) */
    return bits;
}

void random_token(char *text, size_t digits)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < digits; i++) {
        if (i % 16 == 0)
            bits = random_kernel();
        text[i] = "0123456789abcdef"[bits & 15];
        bits >>= 4;
    }
    text[digits] = '\0';
}

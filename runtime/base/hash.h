/**
 * A hash of a text, for names that are the user's own: nobody has a reason to make two of them
 * collide.
 */
#ifndef CROWN_BASE_HASH_H
#define CROWN_BASE_HASH_H

#include <stdint.h>

/** @return 64 bits: FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). */
static inline uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

#endif

/**
 * A hash of a text, for names that are the user's own: nobody has a reason to make two of them
 * collide.
 */
#ifndef CROWN_BASE_HASH_H
#define CROWN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** @return 64 bits: FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). */
static inline uint64_t hash_bytes(const char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

/** The same of a text. */
static inline uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

#endif

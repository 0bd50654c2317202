#include "postgres/distinct.h"

#include <stddef.h>

bool distinct_add(struct distinct *set, uint64_t hash)
{
    const size_t places = sizeof(set->hashes) / sizeof(set->hashes[0]);
    size_t i = hash % places;
    while (set->hashes[i] != 0) {
        if (set->hashes[i] == hash)
            return false;
        i = (i + 1) % places;
    }
    set->hashes[i] = hash;
    return true;
}

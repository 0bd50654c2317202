/**
 * A set of the hashes of the texts in one statement.
 */
#ifndef CROWN_POSTGRES_DISTINCT_H
#define CROWN_POSTGRES_DISTINCT_H

#include <stdbool.h>
#include <stdint.h>

#include "postgres/batch.h"

/** All 0 at first. */
struct distinct {
    uint64_t hashes[2 * POSTGRES_BATCH_MOST]; /* 0: free */
};

/**
 * @param hash not 0; POSTGRES_BATCH_MOST of them at most.
 * @return false when it is there already.
 */
bool distinct_add(struct distinct *set, uint64_t hash);

#endif

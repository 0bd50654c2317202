/**
 * A virtual cluster: candidates with the real election core, a virtual store, links that delay,
 * lose and repeat, clocks that drift as far as is promised, and faults between any two steps. One
 * seed is one run; the promises are checked after each step.
 */
#ifndef CROWN_SIM_WORLD_H
#define CROWN_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "mutate.h"

struct world_result {
    bool failed;
    char what[200]; /* the promise that was broken, and by whom */
    uint64_t steps; /* events that were fed to cores */
    unsigned terms;
};

/** Runs one seed. @param trace prints every event and action. */
struct world_result world_run(uint64_t seed, enum mutation mutation, bool trace);

#endif

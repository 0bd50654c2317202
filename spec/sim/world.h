/**
 * A virtual cluster: candidates with the real election core, a virtual store, links that delay,
 * lose and repeat, clocks that drift, and faults between any two steps. One seed is one run; the
 * promises are checked after each step.
 */
#ifndef CROWN_SIM_WORLD_H
#define CROWN_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

/** Deliberate breaches of one rule each, in the world around the core: every one must be found. */
#define MUTATIONS(X)                                                                               \
    X(NONE, "none")                                                                                \
    X(LATE_ANCHOR, "late-anchor")     /* instants count from the reply, not the request */         \
    X(NO_MARGIN, "no-margin")         /* the keeper kills when the store's TTL is over */          \
    X(LAZY_KEEPER, "lazy-keeper")     /* the keeper leaves the kill to the runtime */              \
    X(NO_DEADMAN, "no-deadman")       /* a stopped runtime's tasks outlive the deadline */         \
    X(RELEASE_FIRST, "release-first") /* the lease is released while the child is stopping */      \
    X(RELEASE_BY_TOKEN, "release-by-token") /* a late release undoes a later claim */              \
    X(CLAIMS_UNORDERED, "claims-unordered") /* a late claim overtakes a newer one of its token */

#define MUTATION_ENUM(name, text) MUTATE_##name,
enum mutation { MUTATIONS(MUTATION_ENUM) MUTATION_COUNT };

struct world_result {
    bool failed;
    char what[200]; /* the promise that was broken, and by whom */
    uint64_t steps; /* events that were fed to cores */
    unsigned terms;
};

/** Runs one seed. @param trace prints every event and action. */
struct world_result world_run(uint64_t seed, enum mutation mutation, bool trace);

#endif

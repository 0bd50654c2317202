/**
 * Goes through every state that a model can come to, breadth first, in bounded memory. States are
 * known again by 64 bits of their hash: two that share them would be taken for one.
 */
#ifndef CROWN_SIM_EXHAUST_EXPLORE_H
#define CROWN_SIM_EXHAUST_EXPLORE_H

#include "model.h"

struct explore_result {
    uint64_t states, moves;
    unsigned depth;     /* of the last state, in moves */
    bool complete;      /* there are no others */
    const char *broken; /* what was broken on the shortest path, or NULL */
};

/**
 * @param states_most, seconds_most where it stops, complete or not.
 * @param out where the shortest path to a breach is written as a scenario.
 */
struct explore_result explore(const struct model_bounds *bounds, uint64_t states_most,
                              unsigned seconds_most, FILE *out);

#endif

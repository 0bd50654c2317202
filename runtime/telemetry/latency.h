/**
 * How long oracle calls took: a histogram for each function, as Prometheus wants it.
 */
#ifndef CROWN_TELEMETRY_LATENCY_H
#define CROWN_TELEMETRY_LATENCY_H

#include <stdint.h>

#define LATENCY_FUNCTIONS 4
#define LATENCY_BOUNDS 11

struct latency {
    struct latency_series {
        const char *function;                /* NULL: not used yet */
        uint64_t counts[LATENCY_BOUNDS + 1]; /* the last: longer than every bound */
        double seconds;
    } series[LATENCY_FUNCTIONS];
};

/** In seconds, rising. */
extern const double latency_bounds[LATENCY_BOUNDS];

/** @param function one of a few static words. */
void latency_note(struct latency *latency, const char *function, int64_t took_ns);

#endif

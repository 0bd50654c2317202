#include "telemetry/latency.h"

#include <stddef.h>

#include "base/clock.h"

const double latency_bounds[LATENCY_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                               0.1,   0.25,   1,     2.5,  10};

void latency_note(struct latency *latency, const char *function, int64_t took_ns)
{
    double seconds = clock_seconds_from_ns(took_ns);
    struct latency_series *series = latency->series;
    while (series->function != NULL && series->function != function) {
        if (++series == latency->series + LATENCY_FUNCTIONS)
            return;
    }
    series->function = function;
    unsigned bound = 0;
    while (bound < LATENCY_BOUNDS && seconds > latency_bounds[bound])
        bound++;
    series->counts[bound]++;
    series->seconds += seconds;
}

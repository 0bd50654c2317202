/**
 * How long a test waits for what has to come: far more than it takes, since nothing but a defect
 * makes it wait that long.
 */
#ifndef CROWN_SPEC_PROCESS_PATIENCE_H
#define CROWN_SPEC_PROCESS_PATIENCE_H

#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"

/** @return 8 s for each of CROWN_TEST_PATIENCE, which is 4 unless it is set. */
static inline int64_t patience_ns(void)
{
    const char *times = getenv("CROWN_TEST_PATIENCE");
    double factor = times != NULL ? strtod(times, NULL) : 4;
    return (int64_t)(8 * (double)NS_PER_S * factor);
}

#endif

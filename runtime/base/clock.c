#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) < 0)
        abort();
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_boottime_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_wall_offset_ns(void)
{
    return read_clock(CLOCK_REALTIME) - clock_boottime_ns();
}

int64_t clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_coarse_ns(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

int64_t clock_ns_from_seconds(double seconds)
{
    if (isnan(seconds) || seconds <= 0)
        return 0;
    if (seconds >= (double)INT64_MAX / (double)NS_PER_S)
        return TIME_NEVER;
    return (int64_t)(seconds * (double)NS_PER_S);
}

double clock_seconds_from_ns(int64_t ns)
{
    return ns == TIME_NEVER ? (double)INFINITY : (double)ns / (double)NS_PER_S;
}

int64_t clock_add_ns(int64_t a, int64_t b)
{
    int64_t sum;
    if (a == TIME_NEVER || b == TIME_NEVER || __builtin_add_overflow(a, b, &sum))
        return TIME_NEVER;
    return sum;
}

/**
 * Time as crown-lua counts it: nanoseconds on CLOCK_BOOTTIME, which does not jump when the wall
 * clock is set and runs on while the host is suspended (clock_gettime(2)). Every deadline is an
 * absolute instant of this clock. Seconds appear only where users give or read them.
 */
#ifndef CROWN_BASE_CLOCK_H
#define CROWN_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/** An instant or a duration that never comes. */
#define TIME_NEVER INT64_MAX

/** @return now, in ns since boot; aborts if the kernel has no CLOCK_BOOTTIME (Linux >= 2.6.39). */
int64_t clock_boottime_ns(void);

/** @return by how much the time of day is ahead of that. It jumps when the wall clock is set, and
 * stays the same otherwise. */
int64_t clock_wall_offset_ns(void);

/** @return now, in ns, on a clock that stands still while the host is suspended: for what another
 * process of this host has to do in time. */
int64_t clock_monotonic_ns(void);

/** @return the same to within a few ms, for a hundredth of the price: for what is asked after each
 * small piece of work. */
int64_t clock_coarse_ns(void);

/**
 * @param seconds a duration as users give it; infinity and anything past 292 years is TIME_NEVER,
 *                NaN and negatives are 0.
 * @return the duration in ns.
 */
int64_t clock_ns_from_seconds(double seconds);

/** @return a duration in seconds; TIME_NEVER becomes infinity. */
double clock_seconds_from_ns(int64_t ns);

/** @return a + b, or TIME_NEVER where that does not fit or either is TIME_NEVER. */
int64_t clock_add_ns(int64_t a, int64_t b);

#endif

/**
 * The arithmetic of one lease: derives what the user did not say from the TTL, refuses what could
 * overlap, and explains itself.
 *
 *   sent ----------- refresh ------ stop_at ------ kill_at -- deadline ----- TTL ends at the store
 *                                   |<- stop_timeout ->|<- lead ->|<- margin ->|
 *
 * margin = 1 % of TTL (drift) + slack (how late the kernel may run us: 20 ms for a real-time
 * keeper, else 250 ms, but never more than TTL / 8); lead = what killing a whole tree may take (20
 * ms in a PID namespace, else 200 ms, but never more than TTL / 10). The rule: refresh +
 * stop_timeout + lead + margin < TTL.
 */
#ifndef CROWN_ELECTION_TIMING_H
#define CROWN_ELECTION_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct election_timing {
    int64_t lease_ns; /* TTL to assume for grants that name none; 0: twice the refresh delay */
    int64_t stop_timeout_ns; /* from the stop signal to SIGKILL; 0: derive (TTL / 4, at most 5 s) */
    bool real_time;          /* keepers run at real-time priority */
    bool namespaced;         /* children live in PID namespaces */
};

/** The instants of one grant, relative to when its request was sent; TIME_NEVER without a TTL. */
struct election_schedule {
    int64_t ttl_ns, refresh_ns, margin_ns, lead_ns, stop_timeout_ns;
    int64_t stop_at_ns, kill_at_ns, deadline_ns;
};

/**
 * Lays out one grant.
 * @param ttl_ns as the oracle said it; 0: timing->lease_ns, else twice refresh_ns; TIME_NEVER:
 * none.
 * @param refresh_ns as the oracle said it.
 * @return 0, or -1 with ERROR_USAGE and the sum in `err`: then `out` holds a layout that is safe
 *         (shorter refresh and stop_timeout), unless ttl_ns is too short for any (out->ttl_ns ==
 * 0).
 */
int timing_schedule(const struct election_timing *timing, int64_t ttl_ns, int64_t refresh_ns,
                    struct election_schedule *out, struct crown_error *err);

/**
 * For `crown-lua check`: the layout of a grant as a few lines of text, with the sum and the worst
 * case of a failover, in seconds.
 * @param cool_down_ns between winning and acting; 0: none.
 * @return the length, as snprintf.
 */
int timing_explain(const struct election_schedule *schedule, int64_t cool_down_ns, char *text,
                   size_t size);

#endif

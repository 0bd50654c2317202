#include "election/timing.h"

#include <stdio.h>

#include "base/clock.h"

#define SLACK_REAL_TIME_NS (20 * NS_PER_MS)
#define SLACK_ORDINARY_NS (250 * NS_PER_MS) /* 57 ms late were seen with 32 spinners a core */
#define LEAD_NAMESPACE_NS (20 * NS_PER_MS)
#define LEAD_ROUNDS_NS                                                                             \
    (200 * NS_PER_MS) /* 162 ms were seen against 16 chains that fork on and on */
#define STOP_TIMEOUT_MOST_NS (5 * NS_PER_S)
#define TTL_LEAST_NS (100 * NS_PER_MS)

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void lay_out(struct election_schedule *out)
{
    out->deadline_ns = out->ttl_ns - out->margin_ns;
    out->kill_at_ns = out->deadline_ns - out->lead_ns;
    out->stop_at_ns = out->kill_at_ns - out->stop_timeout_ns;
}

static void without_lease(const struct election_timing *timing, struct election_schedule *out)
{
    out->ttl_ns = out->deadline_ns = out->kill_at_ns = out->stop_at_ns = TIME_NEVER;
    out->margin_ns = out->lead_ns = 0;
    out->stop_timeout_ns =
        timing->stop_timeout_ns > 0 ? timing->stop_timeout_ns : STOP_TIMEOUT_MOST_NS;
}

static int64_t lease_of(const struct election_timing *timing, int64_t ttl_ns, int64_t refresh_ns)
{
    if (ttl_ns > 0)
        return ttl_ns;
    if (timing->lease_ns > 0)
        return timing->lease_ns;
    return refresh_ns >= TIME_NEVER / 2 ? TIME_NEVER : 2 * refresh_ns;
}

static double s(int64_t ns)
{
    return clock_seconds_from_ns(ns);
}

static int refuse(const struct election_schedule *out, struct crown_error *err)
{
    return error_set(
        err, ERROR_USAGE,
        "timing could overlap: refresh %.3g s + stop_timeout %.3g s + lead %.3g s + "
        "margin %.3g s = %.3g s, which must be less than the TTL of %.3g s",
        s(out->refresh_ns), s(out->stop_timeout_ns), s(out->lead_ns), s(out->margin_ns),
        s(out->refresh_ns + out->stop_timeout_ns + out->lead_ns + out->margin_ns), s(out->ttl_ns));
}

/* What is left of the TTL is shared between refreshing and stopping. */
static void squeeze(struct election_schedule *out)
{
    int64_t room = out->ttl_ns - out->margin_ns - out->lead_ns;
    out->stop_timeout_ns = smaller(out->stop_timeout_ns, room / 3);
    if (out->refresh_ns != TIME_NEVER)
        out->refresh_ns = smaller(out->refresh_ns, room / 3);
}

/* A quarter of the TTL; less where the oracle refreshes late, but no less than a twentieth. */
static int64_t default_stop_timeout(const struct election_schedule *out)
{
    int64_t usual = smaller(out->ttl_ns / 4, STOP_TIMEOUT_MOST_NS);
    if (out->refresh_ns == TIME_NEVER)
        return usual;
    int64_t room = out->ttl_ns - out->lead_ns - out->margin_ns - out->refresh_ns;
    int64_t fits = room / 10 * 9;
    return fits < out->ttl_ns / 20 ? usual : smaller(usual, fits);
}

int timing_schedule(const struct election_timing *timing, int64_t ttl_ns, int64_t refresh_ns,
                    struct election_schedule *out, struct crown_error *err)
{
    out->refresh_ns = refresh_ns;
    out->ttl_ns = lease_of(timing, ttl_ns, refresh_ns);
    if (out->ttl_ns == TIME_NEVER) {
        without_lease(timing, out);
        return 0;
    }
    if (out->ttl_ns < TTL_LEAST_NS) {
        out->ttl_ns = 0;
        return error_set(err, ERROR_USAGE, "a TTL below %.3g s is too short to be kept",
                         s(TTL_LEAST_NS));
    }
    out->margin_ns =
        out->ttl_ns / 100 +
        (timing->real_time ? SLACK_REAL_TIME_NS : smaller(SLACK_ORDINARY_NS, out->ttl_ns / 8));
    out->lead_ns =
        timing->namespaced ? LEAD_NAMESPACE_NS : smaller(LEAD_ROUNDS_NS, out->ttl_ns / 10);
    out->stop_timeout_ns =
        timing->stop_timeout_ns > 0 ? timing->stop_timeout_ns : default_stop_timeout(out);
    /* Event-driven oracles never refresh: then only stopping has to fit. */
    int64_t refresh = refresh_ns == TIME_NEVER ? 0 : refresh_ns;
    int result = 0;
    if (clock_add_ns(refresh, out->stop_timeout_ns) >=
        out->ttl_ns - out->lead_ns - out->margin_ns) {
        if (refresh_ns == TIME_NEVER)
            out->refresh_ns = 0; /* for the sum */
        result = refuse(out, err);
        out->refresh_ns = refresh_ns;
        squeeze(out);
    }
    lay_out(out);
    return result;
}

int timing_explain(const struct election_schedule *schedule, int64_t cool_down_ns, char *text,
                   size_t size)
{
    char pause[64] = "", refresh[64] = "never: the oracle sees a loss itself";
    int64_t refresh_ns = schedule->refresh_ns == TIME_NEVER ? 0 : schedule->refresh_ns;
    if (refresh_ns > 0)
        (void)snprintf(refresh, sizeof(refresh), "every %.3g s", s(refresh_ns));
    if (cool_down_ns > 0)
        (void)snprintf(pause, sizeof(pause), "cool_down      %.3g s between winning and acting\n",
                       s(cool_down_ns));
    if (schedule->ttl_ns == TIME_NEVER)
        return snprintf(text, size,
                        "lease          none: the oracle sees a loss itself\n"
                        "stop_timeout   %.3g s from the stop signal to SIGKILL\n"
                        "%s",
                        s(schedule->stop_timeout_ns), pause);
    return snprintf(
        text, size,
        "TTL            %.3g s at the store\n"
        "refresh        %s\n"
        "stop_timeout   %.3g s from the stop signal to SIGKILL\n"
        "lead           %.3g s for killing a whole tree\n"
        "margin         %.3g s for clocks that differ, and a busy host\n"
        "deadline       %.3g s after the request was sent: stop at %.3g s, kill at %.3g s\n"
        "%s"
        "failover       at most %.3g s after a leader dies\n"
        "no overlap     refresh %.3g + stop_timeout %.3g + lead %.3g + margin %.3g = %.3g s < TTL "
        "%.3g s\n",
        s(schedule->ttl_ns), refresh, s(schedule->stop_timeout_ns), s(schedule->lead_ns),
        s(schedule->margin_ns), s(schedule->deadline_ns), s(schedule->stop_at_ns),
        s(schedule->kill_at_ns), pause, s(clock_add_ns(schedule->ttl_ns, cool_down_ns)),
        s(refresh_ns), s(schedule->stop_timeout_ns), s(schedule->lead_ns), s(schedule->margin_ns),
        s(refresh_ns + schedule->stop_timeout_ns + schedule->lead_ns + schedule->margin_ns),
        s(schedule->ttl_ns));
}

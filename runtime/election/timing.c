#include "election/timing.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/figure.h"

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

/* Seconds in words; they last until the end of the expression. */
#define S(ns) (figure_about(clock_seconds_from_ns(ns)).text)

static int refuse(const struct election_schedule *out, struct crown_error *err)
{
    return error_set(
        err, ERROR_USAGE,
        "timing could overlap: refresh %s s + stop_timeout %s s + lead %s s + "
        "margin %s s = %s s, which must be less than the TTL of %s s",
        S(out->refresh_ns), S(out->stop_timeout_ns), S(out->lead_ns), S(out->margin_ns),
        S(out->refresh_ns + out->stop_timeout_ns + out->lead_ns + out->margin_ns), S(out->ttl_ns));
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
        *out = (struct election_schedule){0};
        return error_set(err, ERROR_USAGE, "a TTL below %s s is too short to be kept",
                         S(TTL_LEAST_NS));
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
    char pause[96] = "";
    if (cool_down_ns > 0)
        (void)snprintf(pause, sizeof(pause), "cool_down      %s s between winning and acting\n",
                       S(cool_down_ns));
    if (schedule->ttl_ns == TIME_NEVER)
        return snprintf(text, size,
                        "lease          none: the oracle sees a loss itself\n"
                        "stop_timeout   %s s from the stop signal to SIGKILL\n"
                        "%s",
                        S(schedule->stop_timeout_ns), pause);
    char refresh[64] = "never: the oracle sees a loss itself", sum[64] = "";
    int64_t refresh_ns = 0;
    if (schedule->refresh_ns != TIME_NEVER) {
        refresh_ns = schedule->refresh_ns;
        (void)snprintf(refresh, sizeof(refresh), "every %s s", S(refresh_ns));
        (void)snprintf(sum, sizeof(sum), "refresh %s + ", S(refresh_ns));
    }
    return snprintf(
        text, size,
        "TTL            %s s at the store\n"
        "refresh        %s\n"
        "stop_timeout   %s s from the stop signal to SIGKILL\n"
        "lead           %s s for killing a whole tree\n"
        "margin         %s s for clocks that differ, and a busy host\n"
        "deadline       %s s after the request was sent: stop at %s s, kill at %s s\n"
        "%s"
        "failover       at most %s s after a leader dies\n"
        "no overlap     %sstop_timeout %s + lead %s + margin %s = %s s < TTL %s s\n",
        S(schedule->ttl_ns), refresh, S(schedule->stop_timeout_ns), S(schedule->lead_ns),
        S(schedule->margin_ns), S(schedule->deadline_ns), S(schedule->stop_at_ns),
        S(schedule->kill_at_ns), pause, S(clock_add_ns(schedule->ttl_ns, cool_down_ns)), sum,
        S(schedule->stop_timeout_ns), S(schedule->lead_ns), S(schedule->margin_ns),
        S(refresh_ns + schedule->stop_timeout_ns + schedule->lead_ns + schedule->margin_ns),
        S(schedule->ttl_ns));
}

/* The arithmetic of a lease: the instants are in order, what could overlap is refused with the sum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "election/timing.h"

static void check_order(const struct election_schedule *schedule)
{
    assert_true(schedule->refresh_ns < schedule->stop_at_ns);
    assert_true(schedule->stop_at_ns < schedule->kill_at_ns);
    assert_true(schedule->kill_at_ns < schedule->deadline_ns);
    assert_true(schedule->deadline_ns < schedule->ttl_ns);
}

static void defaults_fit_every_ttl(void **state)
{
    (void)state;
    for (int64_t ttl = 100 * NS_PER_MS; ttl < 7200 * NS_PER_S; ttl = ttl * 5 / 4)
        for (int real_time = 0; real_time < 2; real_time++)
            for (int namespaced = 0; namespaced < 2; namespaced++) {
                const struct election_timing timing = {.real_time = real_time,
                                                       .namespaced = namespaced && ttl > NS_PER_S};
                struct election_schedule schedule;
                struct crown_error err;
                assert_int_equal(timing_schedule(&timing, ttl, ttl / 3, &schedule, &err), 0);
                check_order(&schedule);
            }
}

static void the_margin_counts_drift_and_a_busy_host(void **state)
{
    (void)state;
    struct election_timing timing = {.real_time = false};
    struct election_schedule schedule;
    assert_int_equal(timing_schedule(&timing, 10 * NS_PER_S, 3 * NS_PER_S, &schedule, NULL), 0);
    assert_int_equal(schedule.margin_ns, 100 * NS_PER_MS + 250 * NS_PER_MS);
    assert_int_equal(schedule.deadline_ns, 10 * NS_PER_S - 350 * NS_PER_MS);
    timing.real_time = true;
    assert_int_equal(timing_schedule(&timing, 10 * NS_PER_S, 3 * NS_PER_S, &schedule, NULL), 0);
    assert_int_equal(schedule.margin_ns, 120 * NS_PER_MS);
}

static void what_could_overlap_is_refused_with_the_sum(void **state)
{
    (void)state;
    const struct election_timing timing = {.stop_timeout_ns = 9 * NS_PER_S};
    struct election_schedule schedule;
    struct crown_error err;
    assert_int_equal(timing_schedule(&timing, 10 * NS_PER_S, 3 * NS_PER_S, &schedule, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(
        strstr(err.message, "refresh 3 s + stop_timeout 9 s + lead 0.2 s + margin 0.35 s"));
    assert_non_null(strstr(err.message, "less than the TTL of 10 s"));
    check_order(&schedule); /* and what comes back is safe */
}

static void a_ttl_that_is_too_short_is_hopeless(void **state)
{
    (void)state;
    const struct election_timing timing = {0};
    struct election_schedule schedule;
    assert_int_equal(timing_schedule(&timing, NS_PER_MS, NS_PER_MS / 3, &schedule, NULL), -1);
    assert_int_equal(schedule.ttl_ns, 0);
}

static void a_grant_without_a_ttl_counts_twice_its_delay(void **state)
{
    (void)state;
    struct election_timing timing = {0};
    struct election_schedule schedule;
    assert_int_equal(timing_schedule(&timing, 0, 2 * NS_PER_S, &schedule, NULL), 0);
    assert_int_equal(schedule.ttl_ns, 4 * NS_PER_S);
    timing.lease_ns = 9 * NS_PER_S;
    assert_int_equal(timing_schedule(&timing, 0, 2 * NS_PER_S, &schedule, NULL), 0);
    assert_int_equal(schedule.ttl_ns, 9 * NS_PER_S);
    timing.lease_ns = 0;
    assert_int_equal(timing_schedule(&timing, 0, TIME_NEVER, &schedule, NULL), 0);
    assert_int_equal(schedule.deadline_ns, TIME_NEVER);
}

static void a_sum_that_leaves_nothing_is_refused(void **state)
{
    struct election_schedule out;
    struct crown_error err;
    const int64_t ttl = 10 * NS_PER_S, refresh = 4 * NS_PER_S;
    const int64_t all = ttl - refresh - 350 * NS_PER_MS - 200 * NS_PER_MS; /* margin, lead */
    struct election_timing timing = {.stop_timeout_ns = all};
    (void)state;
    assert_int_equal(timing_schedule(&timing, ttl, refresh, &out, &err), -1);
    timing.stop_timeout_ns = all - 1;
    assert_int_equal(timing_schedule(&timing, ttl, refresh, &out, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_that_leaves_nothing_is_refused),
        cmocka_unit_test(defaults_fit_every_ttl),
        cmocka_unit_test(the_margin_counts_drift_and_a_busy_host),
        cmocka_unit_test(what_could_overlap_is_refused_with_the_sum),
        cmocka_unit_test(a_ttl_that_is_too_short_is_hopeless),
        cmocka_unit_test(a_grant_without_a_ttl_counts_twice_its_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

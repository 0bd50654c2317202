#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../support/slept.h"

#define NOT_ALLOWED 77

static void assert_never_goes_back(int64_t (*now_ns)(void))
{
    int64_t previous = now_ns();
    assert_true(previous > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = now_ns();
        assert_true(now >= previous);
        previous = now;
    }
}

static void no_clock_goes_back(void **state)
{
    (void)state;
    assert_never_goes_back(clock_boottime_ns);
    assert_never_goes_back(clock_monotonic_ns);
}

/* They differ by the time the host has slept, and both count from its boot. */
static void the_clock_that_stands_still_in_suspend_is_never_ahead(void **state)
{
    (void)state;
    int64_t monotonic_ns = clock_monotonic_ns();
    assert_true(clock_boottime_ns() >= monotonic_ns);
}

static void the_clock_of_the_leases_goes_on_while_the_host_sleeps(void **state)
{
    (void)state;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int64_t awake_ns = clock_boottime_ns() - clock_monotonic_ns();
        if (!slept_for(3600))
            _exit(NOT_ALLOWED);
        _exit(clock_boottime_ns() - clock_monotonic_ns() - awake_ns < 3599 * NS_PER_S);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == NOT_ALLOWED)
        skip();
    assert_int_equal(status, 0);
}

static void seconds_become_nanoseconds(void **state)
{
    (void)state;
    assert_int_equal(clock_ns_from_seconds(1.5), 1500 * NS_PER_MS);
    assert_int_equal(clock_ns_from_seconds(0.000001), NS_PER_US);
    assert_int_equal(clock_ns_from_seconds(0), 0);
}

static void seconds_that_make_no_duration_are_none_and_endless_ones_never_come(void **state)
{
    (void)state;
    assert_int_equal(clock_ns_from_seconds(-1), 0);
    assert_int_equal(clock_ns_from_seconds((double)NAN), 0);
    assert_int_equal(clock_ns_from_seconds((double)-INFINITY), 0);
    assert_true(clock_ns_from_seconds((double)INFINITY) == TIME_NEVER);
    assert_true(clock_ns_from_seconds(1e300) == TIME_NEVER);
    assert_true(clock_ns_from_seconds(9223372036.854775807) == TIME_NEVER);
    assert_true(clock_ns_from_seconds(9223372036.0) < TIME_NEVER);
}

static void nanoseconds_become_seconds(void **state)
{
    (void)state;
    assert_true(clock_seconds_from_ns(2500 * NS_PER_MS) == 2.5);
    assert_true(clock_seconds_from_ns(-NS_PER_S) == -1.0);
    assert_true(isinf(clock_seconds_from_ns(TIME_NEVER)));
}

static void sums_that_do_not_fit_never_come(void **state)
{
    (void)state;
    assert_int_equal(clock_add_ns(1, 2), 3);
    assert_int_equal(clock_add_ns(5, -7), -2);
    assert_true(clock_add_ns(TIME_NEVER, -1) == TIME_NEVER);
    assert_true(clock_add_ns(-1, TIME_NEVER) == TIME_NEVER);
    assert_true(clock_add_ns(TIME_NEVER - 1, 2) == TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_clock_goes_back),
        cmocka_unit_test(the_clock_that_stands_still_in_suspend_is_never_ahead),
        cmocka_unit_test(the_clock_of_the_leases_goes_on_while_the_host_sleeps),
        cmocka_unit_test(seconds_become_nanoseconds),
        cmocka_unit_test(seconds_that_make_no_duration_are_none_and_endless_ones_never_come),
        cmocka_unit_test(nanoseconds_become_seconds),
        cmocka_unit_test(sums_that_do_not_fit_never_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

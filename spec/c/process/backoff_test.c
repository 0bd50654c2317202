#include "process/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void the_first_pause_is_none_and_each_other_twice_the_last(void **state)
{
    (void)state;
    struct backoff backoff = {0};
    static const int64_t ms[] = {0, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
    for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++)
        assert_int_equal(backoff_pause_ns(&backoff, NS_PER_S), ms[i] * NS_PER_MS);
}

static void who_lasted_starts_it_anew(void **state)
{
    (void)state;
    struct backoff backoff = {0};
    for (int i = 0; i < 5; i++)
        (void)backoff_pause_ns(&backoff, 0);
    assert_int_equal(backoff_pause_ns(&backoff, 30 * NS_PER_S), 1600 * NS_PER_MS);
    assert_int_equal(backoff_pause_ns(&backoff, 31 * NS_PER_S), 0);
    assert_int_equal(backoff_pause_ns(&backoff, 0), 100 * NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_pause_is_none_and_each_other_twice_the_last),
        cmocka_unit_test(who_lasted_starts_it_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void pauses_grow_up_to_the_bound_each_with_a_random_half(void **state)
{
    (void)state;
    static const int64_t longest[] = {50, 100, 200, 400, 700, 700};
    struct retry retry;
    retry_init(&retry, 50 * NS_PER_MS, 700 * NS_PER_MS, 1);
    for (size_t i = 0; i < sizeof(longest) / sizeof(longest[0]); i++)
        assert_in_range(retry_next_ns(&retry), longest[i] * NS_PER_MS / 2, longest[i] * NS_PER_MS);
    retry_reset(&retry);
    assert_in_range(retry_next_ns(&retry), 25 * NS_PER_MS, 50 * NS_PER_MS);
}

static void many_that_failed_together_are_kept_apart(void **state)
{
    (void)state;
    int quarters[4] = {0};
    for (unsigned seed = 0; seed < 1000; seed++) {
        struct retry retry;
        retry_init(&retry, RETRY_FIRST_NS, RETRY_MOST_NS, seed);
        int64_t above = retry_next_ns(&retry) - RETRY_FIRST_NS / 2;
        quarters[above * 4 / (RETRY_FIRST_NS / 2 + 1)]++;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(quarters[i], 150, 350);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_up_to_the_bound_each_with_a_random_half),
        cmocka_unit_test(many_that_failed_together_are_kept_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

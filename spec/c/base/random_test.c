#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_seed_repeats_the_published_sequence(void **state)
{
    (void)state;
    struct random random;
    random_seed(&random, 1234567);
    /* The test vector of the generator's reference implementation. */
    assert_true(random_next(&random) == UINT64_C(6457827717110365317));
    assert_true(random_next(&random) == UINT64_C(3203168211198807973));
}

static void a_bound_is_never_reached(void **state)
{
    (void)state;
    struct random random;
    unsigned seen = 0;
    random_seed(&random, 1);
    for (int i = 0; i < 1000; i++) {
        uint64_t number = random_below(&random, 5);
        assert_true(number < 5);
        seen |= 1u << number;
    }
    assert_int_equal(seen, 31);
    assert_true(random_below(&random, 0) == 0);
}

static void tokens_are_hexadecimal_and_differ(void **state)
{
    (void)state;
    char a[33];
    char b[33];
    random_token(a, 32);
    random_token(b, 32);
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    assert_int_equal(strlen(a), 32);
    assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_repeats_the_published_sequence),
        cmocka_unit_test(a_bound_is_never_reached),
        cmocka_unit_test(tokens_are_hexadecimal_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

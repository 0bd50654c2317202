#include "base/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define TEXTS 500

static void what_is_alike_is_one_copy(void **state)
{
    (void)state;
    char text[] = "node-1";
    const char *one = shared_text(text), *other = shared_text("node-1");
    assert_ptr_equal(one, other);
    assert_ptr_not_equal(one, text);
    text[5] = '2';
    assert_string_equal(one, "node-1");
    const char *longer = shared_text("node-10");
    assert_ptr_not_equal(longer, one);
    shared_release(one);
    shared_release(longer);
    assert_string_equal(other, "node-1"); /* one still has it */
    shared_release(other);
}

static void bytes_are_compared_to_the_end(void **state)
{
    (void)state;
    const int64_t numbers[] = {1, 2}, others[] = {1, 3};
    const int64_t *one = shared_hold(numbers, sizeof(numbers));
    const int64_t *other = shared_hold(others, sizeof(others));
    assert_int_equal(one[1], 2);
    assert_int_equal(other[1], 3);
    shared_release(one);
    shared_release(other);
}

static void no_text_is_none(void **state)
{
    (void)state;
    assert_null(shared_text(NULL));
    shared_release(NULL);
}

static void many_stand_side_by_side(void **state)
{
    (void)state;
    const char *held[TEXTS];
    char text[32];
    for (int i = 0; i < TEXTS; i++) {
        (void)snprintf(text, sizeof(text), "node-%d", i);
        held[i] = shared_text(text);
    }
    for (int i = 0; i < TEXTS; i++) {
        (void)snprintf(text, sizeof(text), "node-%d", i);
        const char *again = shared_text(text);
        assert_ptr_equal(again, held[i]);
        shared_release(again);
        shared_release(held[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_alike_is_one_copy),
        cmocka_unit_test(bytes_are_compared_to_the_end),
        cmocka_unit_test(no_text_is_none),
        cmocka_unit_test(many_stand_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void bytes_leave_in_the_order_they_came(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    struct random random;
    unsigned char chunk[700];
    unsigned char next_in = 0;
    unsigned char next_out = 0;
    random_seed(&random, 7);
    for (int step = 0; step < 2000; step++) {
        size_t size = (size_t)random_below(&random, sizeof(chunk));
        for (size_t i = 0; i < size; i++)
            chunk[i] = next_in++;
        size_t before = buffer.size;
        assert_int_equal(buffer_append(&buffer, (const char *)chunk, size), 0);
        assert_int_equal(buffer.size, before + size);
        size_t drop = (size_t)random_below(&random, buffer.size + 1);
        for (size_t i = 0; i < drop; i++)
            assert_int_equal((unsigned char)buffer.bytes[i], next_out++);
        buffer_drop(&buffer, drop);
    }
    buffer_free(&buffer);
    assert_null(buffer.bytes);
    assert_int_equal(buffer.size, 0);
    assert_int_equal(buffer.room, 0);
}

static void nothing_can_be_added_to_and_taken_from_an_empty_buffer(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    assert_int_equal(buffer_append(&buffer, "", 0), 0);
    buffer_drop(&buffer, 0);
    assert_int_equal(buffer.size, 0);
    buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_leave_in_the_order_they_came),
        cmocka_unit_test(nothing_can_be_added_to_and_taken_from_an_empty_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

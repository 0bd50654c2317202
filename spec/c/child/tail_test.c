#include "child/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void the_last_bytes_are_kept_in_order(void **state)
{
    (void)state;
    struct tail tail = {0};
    struct random random;
    random_seed(&random, 7);
    for (size_t room = 1; room < 40; room++) {
        char all[2000];
        char kept[40];
        size_t written = 0;
        tail_begin(&tail, room);
        while (written < sizeof(all) - 100) {
            size_t size = (size_t)random_below(&random, 2 * room + 1);
            for (size_t i = 0; i < size; i++)
                all[written + i] = (char)('a' + (written + i) % 23);
            tail_add(&tail, all + written, size);
            written += size;
            size_t wanted = written < room ? written : room;
            assert_int_equal(tail.size, wanted);
            assert_int_equal(tail.total, written);
            tail_copy(&tail, kept);
            assert_memory_equal(kept, all + written - wanted, wanted);
        }
    }
    tail_free(&tail);
    assert_null(tail.bytes);
}

static void nothing_is_kept_where_nothing_is_asked_for(void **state)
{
    (void)state;
    struct tail tail = {0};
    char out[1] = {'x'};
    tail_begin(&tail, 0);
    tail_add(&tail, "abc", 3);
    tail_copy(&tail, out);
    assert_int_equal(tail.size, 0);
    assert_int_equal(out[0], 'x');
    tail_begin(&tail, 4);
    tail_add(&tail, "abc", 3);
    tail_begin(&tail, 0);
    assert_null(tail.bytes);
    tail_free(&tail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_bytes_are_kept_in_order),
        cmocka_unit_test(nothing_is_kept_where_nothing_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

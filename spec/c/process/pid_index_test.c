/* What belongs to which process id, among thousands that come and go. */
#include "process/pid_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

#define SLOTS (2 * PID_INDEX_MOST) /* ids so far apart want the same place */
#define IDS 64

static struct pid_index pids;

static int open_index(void **state)
{
    (void)state;
    return pid_index_init(&pids);
}

static void what_was_set_last_is_found_and_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(pid_index_find(&pids, 7), PID_INDEX_NONE);
    pid_index_set(&pids, 7, 1);
    pid_index_set(&pids, 7, 2);
    assert_int_equal(pid_index_find(&pids, 7), 2);
    assert_int_equal(pid_index_find(&pids, 7 + SLOTS), PID_INDEX_NONE);
    pid_index_remove(&pids, 7 + SLOTS);
    assert_int_equal(pid_index_find(&pids, 7), 2);
    pid_index_remove(&pids, 7);
    assert_int_equal(pid_index_find(&pids, 7), PID_INDEX_NONE);
}

/* Ids that want the same few places, at the end of the table and around it. */
static pid_t crowded(uint64_t at)
{
    return (pid_t)(SLOTS - 4 + at % 8 + at / 8 * SLOTS);
}

static void who_is_left_is_found_where_all_crowd_in_a_few_places(void **state)
{
    (void)state;
    struct random random;
    unsigned value[IDS];
    random_seed(&random, 1);
    for (unsigned i = 0; i < IDS; i++)
        value[i] = PID_INDEX_NONE;
    for (unsigned step = 1; step <= 20000; step++) {
        uint64_t at = random_below(&random, IDS);
        value[at] = random_below(&random, 2) == 0 ? PID_INDEX_NONE : step;
        if (value[at] == PID_INDEX_NONE)
            pid_index_remove(&pids, crowded(at));
        else
            pid_index_set(&pids, crowded(at), step);
        for (unsigned i = 0; i < IDS; i++)
            assert_int_equal(pid_index_find(&pids, crowded(i)), value[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_set_last_is_found_and_nothing_else, open_index),
        cmocka_unit_test_setup(who_is_left_is_found_where_all_crowd_in_a_few_places, open_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

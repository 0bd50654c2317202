/* The table of keepers: who lives, and who failed and must be told of. */
#include "process/keepers.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct keepers keepers;

/* What was told, and how much more may be. */
static struct {
    unsigned room, count;
    uint64_t id[8];
    int error[8];
} told;

static bool tell(void *context, uint64_t id, int error)
{
    assert_ptr_equal(context, &told);
    if (told.count == told.room)
        return false;
    told.id[told.count] = id;
    told.error[told.count++] = error;
    return true;
}

static void tell_of(bool gone, unsigned room)
{
    told.room = told.count + room;
    keepers_tell_failed(&keepers, gone, tell, &told);
}

static int open_table(void **state)
{
    (void)state;
    told.room = told.count = 0;
    return keepers_init(&keepers);
}

static void who_ends_well_is_off_the_table(void **state)
{
    (void)state;
    keepers_add(&keepers, 101, 1);
    keepers_add(&keepers, 102, 2);
    assert_int_equal(keepers.count, 2);
    assert_false(keepers_ended(&keepers, 101, 0)); /* it said GONE itself */
    assert_int_equal(keepers.count, 1);
    assert_false(keepers_has(&keepers, 101));
    assert_true(keepers_has(&keepers, 102));
    assert_false(keepers_owed(&keepers, true));
    tell_of(true, 8);
    assert_int_equal(told.count, 0);
}

static void who_died_is_told_of_when_what_it_left_is_gone(void **state)
{
    (void)state;
    keepers_add(&keepers, 101, 1);
    keepers_add(&keepers, 102, 2);
    assert_true(keepers_ended(&keepers, 101, SIGKILL));
    assert_false(keepers_ended(&keepers, 999, SIGKILL));
    assert_int_equal(keepers.count, 1);
    assert_false(keepers_owed(&keepers, false));
    tell_of(false, 8);
    assert_int_equal(told.count, 0);
    assert_true(keepers_owed(&keepers, true));
    tell_of(true, 8);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.id[0], 1);
    assert_int_equal(told.error[0], 0);
    assert_false(keepers_owed(&keepers, true));
    assert_true(keepers_has(&keepers, 102));
}

/* A keeper whose exit code is not 0 could not say GONE. */
static void who_ends_badly_is_told_of(void **state)
{
    (void)state;
    keepers_add(&keepers, 101, 1);
    assert_true(keepers_ended(&keepers, 101, 1 << 8));
    tell_of(true, 8);
    assert_int_equal(told.id[0], 1);
}

static void who_was_never_forked_is_told_of_at_once(void **state)
{
    (void)state;
    keepers_add_failed(&keepers, 7, EAGAIN);
    assert_int_equal(keepers.count, 0);
    assert_true(keepers_owed(&keepers, false));
    tell_of(false, 8);
    assert_int_equal(told.id[0], 7);
    assert_int_equal(told.error[0], EAGAIN);
    assert_false(keepers_owed(&keepers, true));
}

static void what_cannot_be_told_now_is_told_later_and_once(void **state)
{
    (void)state;
    uint64_t sum = 0;
    keepers_add(&keepers, 101, 100);
    for (uint64_t id = 1; id <= 4; id++)
        keepers_add_failed(&keepers, id, EAGAIN);
    tell_of(false, 1);
    assert_int_equal(told.count, 1);
    assert_true(keepers_owed(&keepers, false));
    tell_of(false, 2);
    tell_of(false, 8);
    assert_int_equal(told.count, 4);
    for (unsigned i = 0; i < told.count; i++)
        sum += told.id[i];
    assert_int_equal(sum, 1 + 2 + 3 + 4);
    assert_true(keepers_has(&keepers, 101));
    assert_int_equal(keepers.used, 1);
}

static void there_is_room_for_the_news_of_failures_when_there_is_none_for_keepers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KEEPERS_MAX; i++) {
        assert_true(keepers_room(&keepers));
        keepers_add(&keepers, (pid_t)i + 2, i);
    }
    assert_false(keepers_room(&keepers));
    for (unsigned i = 0; i < KEEPERS_ROOM - KEEPERS_MAX; i++) {
        assert_false(keepers_full(&keepers));
        keepers_add_failed(&keepers, KEEPERS_MAX + i, EAGAIN);
    }
    assert_true(keepers_full(&keepers));
    told.room = 0;
    assert_true(keepers_owed(&keepers, false));
    assert_false(keepers_ended(&keepers, 2, 0));
    assert_true(keepers_room(&keepers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_ends_well_is_off_the_table, open_table),
        cmocka_unit_test_setup(who_died_is_told_of_when_what_it_left_is_gone, open_table),
        cmocka_unit_test_setup(who_ends_badly_is_told_of, open_table),
        cmocka_unit_test_setup(who_was_never_forked_is_told_of_at_once, open_table),
        cmocka_unit_test_setup(what_cannot_be_told_now_is_told_later_and_once, open_table),
        cmocka_unit_test_setup(
            there_is_room_for_the_news_of_failures_when_there_is_none_for_keepers, open_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

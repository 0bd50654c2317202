/* What a runtime says to its supervisor, and what it does when that is gone. */
#include "process/link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/wire.h"

static struct {
    struct link *link;
    int supervisor;
} ends;

static int open_ends(void **state)
{
    struct crown_error err;
    int line[2];
    (void)state;
    if (wire_pair(line, &err) < 0)
        return -1;
    ends.supervisor = line[0];
    ends.link = link_new(line[1], &err);
    return ends.link != NULL ? 0 : -1;
}

static int close_ends(void **state)
{
    (void)state;
    link_free(ends.link);
    return close(ends.supervisor);
}

/* Until there is none more. @return how many of them were of this type. */
static unsigned count_of(enum wire_type type)
{
    struct wire_message message;
    unsigned count = 0;
    while (wire_receive(ends.supervisor, &message, NULL, NULL, NULL) > 0)
        count += message.type == type;
    return count;
}

static void a_keeper_is_asked_to_be_ready_once(void **state)
{
    (void)state;
    link_prepare(ends.link);
    assert_int_equal(count_of(WIRE_PREPARE), 1);
    link_prepare(ends.link);
    assert_int_equal(count_of(WIRE_PREPARE), 0);
}

static void each_word_is_said_as_often_as_it_is_asked_for(void **state)
{
    (void)state;
    struct crown_error err;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(link_keep(ends.link, &err), 0);
        assert_int_equal(count_of(WIRE_KEEP), 1);
        assert_int_equal(link_arm(ends.link, true, 7, &err), 0);
        assert_int_equal(count_of(WIRE_ARM), 1);
        assert_int_equal(link_arm(ends.link, false, 0, &err), 0);
        assert_int_equal(count_of(WIRE_DISARM), 1);
        assert_int_equal(link_end_keeper(ends.link, 3, &err), 0);
        assert_int_equal(count_of(WIRE_END_KEEPER), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_keeper_is_asked_to_be_ready_once, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(each_word_is_said_as_often_as_it_is_asked_for, open_ends,
                                        close_ends),
    };
    return cmocka_run_group_tests_name("the line to the supervisor", tests, NULL, NULL);
}

/* A keeper whose child has the terminal. */
#include "process/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "../../support/whole_keeper.h"
#include "base/clock.h"

#include <setjmp.h>

#include <cmocka.h>

static void a_child_has_the_terminal(bool ctrl_c_ends)
{
    whole_keeper.spec.terminal = whole_keeper.terminal = true;
    whole_keeper.spec.ctrl_c_ends = ctrl_c_ends;
    whole_keeper.foreground = WHOLE_CHILD;
    whole_keeper_starts();
    notes_forget();
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = WHOLE_CHILD});
}

static void it_hears_of_ctrl_c_in_its_childs_group_and_passes_it_on(void **state)
{
    (void)state;
    a_child_has_the_terminal(true);
    assert_did("moves 0 to the group of child", "hears of Ctrl-C", "runtime hears started pid=400");
    signal_comes(SIGINT, SI_USER);
    assert_did_nothing();
    signal_comes(SIGINT, SI_KERNEL);
    assert_did("runtime hears interrupted", "sends 2 to supervisor");
    signal_comes(SIGINT, SI_KERNEL);
    assert_did("sends 2 to supervisor");
    whole_keeper.spec.stop_signal = SIGINT;
    whole_process.parent = 1; /* another one by now, whom it is none of */
    signal_comes(SIGINT, SI_KERNEL);
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = TIME_NEVER});
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15", "wakes at 12");
}

static void a_child_that_was_interrupted_is_not_interrupted_again(void **state)
{
    (void)state;
    whole_keeper.spec.stop_signal = SIGINT;
    a_child_has_the_terminal(true);
    signal_comes(SIGINT, SI_KERNEL);
    notes_forget();
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = TIME_NEVER});
    assert_did("warden hears signal status=1 signal=18", "runtime hears signalled signal=2",
               "wakes at 12");
}

static void a_child_that_was_not_interrupted_is(void **state)
{
    (void)state;
    whole_keeper.spec.stop_signal = SIGINT;
    a_child_has_the_terminal(true);
    notes_forget();
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = TIME_NEVER});
    assert_did("warden hears signal status=1 signal=2", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=2", "wakes at 12");
}

static void a_keeper_stays_where_it_is(void)
{
    whole_keeper_starts();
    notes_forget();
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = WHOLE_CHILD});
    assert_did("runtime hears started pid=400");
}

static void ctrl_c_that_is_the_childs_own_is_not_listened_to(void **state)
{
    (void)state;
    a_child_has_the_terminal(false);
    assert_did("runtime hears started pid=400");
}

static void nor_is_it_without_the_terminal(void **state)
{
    (void)state;
    whole_keeper.spec.ctrl_c_ends = whole_keeper.terminal = true;
    whole_keeper.foreground = WHOLE_CHILD;
    a_keeper_stays_where_it_is();
}

static void nor_where_standard_input_is_none(void **state)
{
    (void)state;
    whole_keeper.spec.ctrl_c_ends = whole_keeper.spec.terminal = true;
    whole_keeper.foreground = WHOLE_CHILD;
    a_keeper_stays_where_it_is();
}

static void nor_where_the_child_is_in_the_background(void **state)
{
    (void)state;
    whole_keeper.spec.ctrl_c_ends = whole_keeper.spec.terminal = whole_keeper.terminal = true;
    a_keeper_stays_where_it_is();
}

static void the_terminal_is_given_back_at_the_end(void **state)
{
    (void)state;
    a_child_has_the_terminal(false);
    notes_forget();
    runtime_leaves();
    assert_did("dies at 20", "kills the tree, warden last", "says no more to the warden",
               "gives the terminal to the group of supervisor",
               "kills the tree to its end, warden last", "ends with 2");
}

static void assert_keeps_the_terminal_as_it_is(void)
{
    notes_forget();
    runtime_leaves();
    assert_did("dies at 20", "kills the tree, warden last", "says no more to the warden",
               "kills the tree to its end, warden last", "ends with 2");
}

static void a_terminal_that_its_child_never_had_is_left_alone(void **state)
{
    (void)state;
    whole_keeper.terminal = true;
    whole_keeper.foreground = 4711;
    whole_keeper_starts();
    assert_keeps_the_terminal_as_it_is();
}

static void what_was_a_terminal_and_has_hung_up_is_not_given_back(void **state)
{
    (void)state;
    a_child_has_the_terminal(false);
    whole_keeper.terminal = false;
    assert_keeps_the_terminal_as_it_is();
}

static void a_terminal_that_the_group_has_need_not_be_given(void **state)
{
    (void)state;
    a_child_has_the_terminal(false);
    whole_keeper.foreground = WHOLE_SUPERVISOR;
    assert_keeps_the_terminal_as_it_is();
}

static void in_a_namespace_the_terminal_is_its_childs_by_its_number_outside(void **state)
{
    (void)state;
    whole_keeper.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_keeper.spec.terminal = whole_keeper.spec.ctrl_c_ends = whole_keeper.terminal = true;
    whole_keeper.children = "400 ";
    whole_keeper.foreground = WHOLE_CHILD;
    whole_keeper_starts();
    notes_forget();
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = 2});
    assert_did("moves 0 to the group of child", "hears of Ctrl-C", "runtime hears started pid=400");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(it_hears_of_ctrl_c_in_its_childs_group_and_passes_it_on),
        WHOLE_TEST(a_child_that_was_interrupted_is_not_interrupted_again),
        WHOLE_TEST(a_child_that_was_not_interrupted_is),
        WHOLE_TEST(ctrl_c_that_is_the_childs_own_is_not_listened_to),
        WHOLE_TEST(nor_is_it_without_the_terminal),
        WHOLE_TEST(nor_where_standard_input_is_none),
        WHOLE_TEST(nor_where_the_child_is_in_the_background),
        WHOLE_TEST(the_terminal_is_given_back_at_the_end),
        WHOLE_TEST(a_terminal_that_its_child_never_had_is_left_alone),
        WHOLE_TEST(what_was_a_terminal_and_has_hung_up_is_not_given_back),
        WHOLE_TEST(a_terminal_that_the_group_has_need_not_be_given),
        WHOLE_TEST(in_a_namespace_the_terminal_is_its_childs_by_its_number_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

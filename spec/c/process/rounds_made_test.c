/* Rounds of SIGKILL among processes that the test has made up; among real ones in rounds_test. */
#include "process/rounds.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../support/whole_rounds.h"

#define DEEP 70 /* more than a round goes down */

static void tell(void *context, const struct rounds_refused *who)
{
    notes_add("%s cannot be killed: %d, %d", (const char *)context, (int)who->pid, who->error);
}

static void kill_all(pid_t last)
{
    rounds_kill_all(last, tell, "it");
}

/* A dead parent forks no more. */
static void kill_parents_before_their_children(void **state)
{
    (void)state;
    (void)has(ROUNDS_KILLER, 10);
    (void)has(10, 11);
    (void)has(11, 12);
    (void)has(ROUNDS_KILLER, 13);
    (void)has(1, 14); /* a stranger */
    assert_int_equal(rounds_kill_once(0).pid, 0);
    assert_did("kills 10", "kills 11", "kills 12", "kills 13");
}

static void reach_what_any_thread_has_forked(void **state)
{
    (void)state;
    has(ROUNDS_KILLER, 10)->thread = 1;
    has(10, 11)->thread = 1;
    (void)rounds_kill_once(0);
    assert_did("kills 10", "kills 11");
}

static void end_when_all_are_dead_and_reaped(void **state)
{
    (void)state;
    (void)has(ROUNDS_KILLER, 10);
    (void)has(10, 11);
    kill_all(0);
    assert_did("kills 10", "kills 11", "waits for 0.5 ms", "reaps 10, after 0",
               "reaps 11, after 1");
    kill_all(0);
    assert_did_nothing(); /* there is nobody */
}

/* Its children are on no list of the killer's until it is dead. */
static pid_t born;
static void bear(unsigned times)
{
    if (times == 1)
        born = has(ROUNDS_KILLER, 15)->pid;
}

static void reap_nobody_while_one_lives(void **state)
{
    (void)state;
    (void)has(ROUNDS_KILLER, 10);
    whole_rounds.waited = bear;
    kill_all(0);
    assert_did("kills 10", "waits for 0.5 ms", "kills 15", "waits for 1 ms", "reaps 10, after 0",
               "reaps 15, after 1");
}

static void let_go(unsigned times)
{
    if (times == 10)
        being(10)->refuses = 0;
}

/* Each time it waits twice as long, up to 50 ms; then it reaps beside one that lives. */
static void go_on_until_one_that_may_not_be_killed_may_be(void **state)
{
    (void)state;
    has(ROUNDS_KILLER, 10)->refuses = EPERM;
    has(ROUNDS_KILLER, 11)->dead = true;
    whole_rounds.waited = let_go;
    kill_all(0);
    assert_did("kills 10", "kills 10 by its number", "it cannot be killed: 10, 1",
               "waits for 0.5 ms", "kills 10", "kills 10 by its number", "waits for 1 ms",
               "kills 10", "kills 10 by its number", "waits for 2 ms", "kills 10",
               "kills 10 by its number", "waits for 4 ms", "kills 10", "kills 10 by its number",
               "waits for 8 ms", "kills 10", "kills 10 by its number", "waits for 16 ms",
               "kills 10", "kills 10 by its number", "waits for 32 ms", "kills 10",
               "kills 10 by its number", "reaps 11, after 0", "waits for 0.5 ms", "kills 10",
               "kills 10 by its number", "waits for 1 ms", "kills 10", "kills 10 by its number",
               "waits for 2 ms", "kills 10", "waits for 4 ms", "reaps 10, after 0");
}

static void tell_nobody_where_nobody_asks(void **state)
{
    (void)state;
    has(ROUNDS_KILLER, 10)->refuses = EPERM;
    assert_int_equal(rounds_kill_once(0).pid, 10);
    assert_int_equal(rounds_kill_once(0).error, EPERM);
    whole_rounds.waited = let_go;
    rounds_kill_all(0, NULL, NULL);
    assert_null(being(10));
}

/* It ends the tree should the killer die now, and reaps what is dead below it. */
static void kill_the_last_one_when_it_has_no_children(void **state)
{
    (void)state;
    (void)has(ROUNDS_KILLER, 10);
    (void)has(10, 11);
    (void)rounds_kill_once(10);
    assert_did("kills 11", "continues 10 by its number");
    whole_rounds.count--;
    (void)rounds_kill_once(10);
    assert_did("kills 10 by its number");
}

static void spare_the_dead(void **state)
{
    (void)state;
    has(ROUNDS_KILLER, 10)->dead = true;
    (void)rounds_kill_once(0);
    assert_did_nothing();
}

/* --- whom a list names that is a moment old */

static void spare_who_has_the_number_of_one_that_is_gone(void **state)
{
    (void)state;
    whole_rounds.listed = 20;
    (void)rounds_kill_once(0);
    (void)has(1, 20);
    (void)rounds_kill_once(0);
    assert_did_nothing();
    being(20)->parent = ROUNDS_KILLER;
    being(20)->hidden = true; /* /proc shows it to nobody; the kernel says that it is ours */
    whole_rounds.listed = 0;
    (void)rounds_kill_once(0);
    assert_did("kills 20");
}

/* The parent's descriptor says that it is another one. */
static void spare_the_children_of_one_that_is_gone(void **state)
{
    const struct rounds_process gone = {.pid = 10, .pidfd = 100099};
    const struct rounds_process there = {.pid = 10, .pidfd = 100010};
    const struct rounds_process unsure = {.pid = 10, .pidfd = -1};
    (void)state;
    (void)has(1, 10);
    (void)has(10, 11);
    assert_int_equal(rounds_kill_below(&gone).pid, 0);
    assert_int_equal(rounds_kill_child(&gone, 11).pid, 0);
    assert_did_nothing();
    (void)rounds_kill_below(&there);
    assert_did("kills 11");
    (void)rounds_kill_child(&there, 11);
    assert_did("kills 11");
    (void)rounds_kill_child(&unsure, 11);
    assert_did("kills 11");
    whole_rounds.descriptors_refuse = EPERM; /* by seccomp: that says nothing of it */
    (void)rounds_kill_child(&there, 11);
    assert_did("kills 11 by its number");
    being(11)->refuses = EPERM;
    assert_int_equal(rounds_kill_child(&there, 11).pid, 11);
    assert_int_equal(rounds_kill_below(&there).error, EPERM);
}

/* --- without descriptors of processes */

static void go_by_numbers_without_descriptors(void **state)
{
    (void)state;
    whole_rounds.no_descriptors = true;
    (void)has(ROUNDS_KILLER, 10);
    (void)has(10, 11);
    has(ROUNDS_KILLER, 12)->dead = true;
    assert_int_equal(rounds_kill_once(0).pid, 0);
    assert_did("kills 10 by its number", "kills 11 by its number");
}

static void touch_no_number_of_one_that_its_descriptor_says_is_gone(void **state)
{
    (void)state;
    whole_rounds.descriptors_refuse = ESRCH;
    (void)has(ROUNDS_KILLER, 10);
    assert_int_equal(rounds_kill_once(0).pid, 0); /* nor was it refused */
    assert_did_nothing();
}

/* --- bounds */

static void come_nearer_to_what_is_deep(void **state)
{
    unsigned killed = 0;
    (void)state;
    (void)has(ROUNDS_KILLER, 1);
    for (pid_t pid = 2; pid <= DEEP; pid++)
        (void)has(pid - 1, pid);
    (void)rounds_kill_once(0);
    for (pid_t pid = 1; pid <= DEEP; pid++)
        killed += being(pid)->dying;
    assert_int_equal(killed, 64);
    notes_forget();
    kill_all(0);
    for (pid_t pid = 1; pid <= DEEP; pid++)
        assert_null(being(pid));
    notes_forget();
}

/* --- who is dead, and kept by who traces it */

static void end_when_only_the_dead_are_left_whom_another_holds(void **state)
{
    (void)state;
    *has(ROUNDS_KILLER, 10) =
        (struct whole_being){.pid = 10, .parent = ROUNDS_KILLER, .dead = true, .held = true};
    kill_all(0);
    assert_did("waits for 0.5 ms", "waits for 1 ms", "waits for 2 ms", "waits for 4 ms",
               "waits for 8 ms", "waits for 16 ms", "waits for 32 ms");
}

static void go_on_where_one_has_come_since_they_looked(void **state)
{
    (void)state;
    *has(ROUNDS_KILLER, 10) =
        (struct whole_being){.pid = 10, .parent = ROUNDS_KILLER, .dead = true, .held = true};
    whole_rounds.comes_as_one_looks = 11;
    kill_all(0);
    assert_did("waits for 0.5 ms", "waits for 1 ms", "waits for 2 ms", "waits for 4 ms",
               "waits for 8 ms", "waits for 16 ms", "waits for 32 ms", "waits for 50 ms",
               "kills 11", "waits for 50 ms", "reaps 11, after 0");
}

static void see_all(unsigned times)
{
    if (times == 9)
        whole_rounds.lists_are_cut = false;
}

static void go_on_where_they_cannot_see_all(void **state)
{
    (void)state;
    *has(ROUNDS_KILLER, 10) =
        (struct whole_being){.pid = 10, .parent = ROUNDS_KILLER, .dead = true, .held = true};
    whole_rounds.lists_are_cut = true;
    whole_rounds.waited = see_all;
    kill_all(0);
    assert_did("waits for 0.5 ms", "waits for 1 ms", "waits for 2 ms", "waits for 4 ms",
               "waits for 8 ms", "waits for 16 ms", "waits for 32 ms", "waits for 50 ms",
               "waits for 50 ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROUNDS_TEST(kill_parents_before_their_children),
        ROUNDS_TEST(reach_what_any_thread_has_forked),
        ROUNDS_TEST(end_when_all_are_dead_and_reaped),
        ROUNDS_TEST(reap_nobody_while_one_lives),
        ROUNDS_TEST(go_on_until_one_that_may_not_be_killed_may_be),
        ROUNDS_TEST(tell_nobody_where_nobody_asks),
        ROUNDS_TEST(kill_the_last_one_when_it_has_no_children),
        ROUNDS_TEST(spare_the_dead),
        ROUNDS_TEST(spare_who_has_the_number_of_one_that_is_gone),
        ROUNDS_TEST(spare_the_children_of_one_that_is_gone),
        ROUNDS_TEST(go_by_numbers_without_descriptors),
        ROUNDS_TEST(touch_no_number_of_one_that_its_descriptor_says_is_gone),
        ROUNDS_TEST(come_nearer_to_what_is_deep),
        ROUNDS_TEST(end_when_only_the_dead_are_left_whom_another_holds),
        ROUNDS_TEST(go_on_where_one_has_come_since_they_looked),
        ROUNDS_TEST(go_on_where_they_cannot_see_all),
    };
    return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}

/* A keeper that was forked ahead of its child. */
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

static void one_that_is_ready_has_a_warden_and_holds_nothing(void **state)
{
    (void)state;
    whole_keeper_is_ready();
    assert_did("keeps 1 descriptors", "is crown-spare ", "is on time", "takes orphans in (1)",
               "is told of its parent's death by 18", "starts a warden that is ready");
    signal_comes(SIGCHLD, CLD_EXITED);
    whole_keeper_is_given_the_child(2);
    assert_did("is crown-keeper a", "begins a session", "dies at 16",
               "warden hears start_child with 1 descriptors", "sends 18 to warden", "wakes at 10");
    assert_int_equal(fcntl(whole_keeper.orders, F_GETFD), -1);
}

static void one_that_nobody_needs_ends_with_its_warden(void **state)
{
    (void)state;
    whole_keeper_is_ready();
    notes_forget();
    whole_keeper_is_of_no_use();
    assert_int_equal(fcntl(whole_keeper.line, F_GETFD), -1);
    assert_did("sends 9 to warden", "reaps warden", "ends with 0");
}

static void one_that_cannot_be_set_up_says_that_a_child_may_be_lost(void **state)
{
    (void)state;
    whole_keeper.no_timer = true;
    whole_keeper_is_ready();
    assert_did("keeps 1 descriptors", "is crown-spare ", "is on time", "ends with 1");
}

static void one_without_a_warden_says_that_a_child_may_be_lost(void **state)
{
    (void)state;
    whole_keeper.no_warden = true;
    whole_keeper_is_ready();
    assert_did("keeps 1 descriptors", "is crown-spare ", "is on time", "takes orphans in (1)",
               "is told of its parent's death by 18", "ends with 1");
}

static void one_that_has_no_room_for_the_child_says_that_it_is_lost(void **state)
{
    (void)state;
    whole_keeper_is_ready();
    notes_forget();
    whole_keeper_is_given_the_child(0);
    assert_did("sends 9 to warden", "reaps warden", "ends with 1");
}

static void one_whose_warden_has_died_is_given_no_child_any_more(void **state)
{
    (void)state;
    whole_keeper_is_ready();
    notes_forget();
    warden_dies();
    assert_int_equal(fcntl(whole_keeper.line, F_GETFD), -1);
    assert_did("reaps warden", "hears no more of the supervisor", "ends with 0");
}

static void one_that_cannot_read_the_child_says_so_and_ends_its_warden(void **state)
{
    (void)state;
    whole_keeper.spec.argv = whole_keeper.spec.envp; /* no program */
    whole_keeper_is_ready();
    notes_forget();
    whole_keeper_is_given_the_child(2);
    assert_did("sends 9 to warden", "reaps warden",
               "runtime hears start_failed error=1 (the child's description makes no sense)",
               "runtime hears gone error=1 (the child's description makes no sense)",
               "ends with 0");
}

static void in_a_namespace_one_that_is_ready_starts_another_warden(void **state)
{
    (void)state;
    whole_keeper.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_keeper_is_ready();
    notes_forget();
    whole_keeper_is_given_the_child(2);
    assert_did("is crown-keeper a", "begins a session", "dies at 16", "sends 9 to warden",
               "reaps warden", "starts a warden for app, which dies at 18, stream none",
               "wakes at 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(one_that_is_ready_has_a_warden_and_holds_nothing),
        WHOLE_TEST(one_that_nobody_needs_ends_with_its_warden),
        WHOLE_TEST(one_that_cannot_be_set_up_says_that_a_child_may_be_lost),
        WHOLE_TEST(one_without_a_warden_says_that_a_child_may_be_lost),
        WHOLE_TEST(one_that_has_no_room_for_the_child_says_that_it_is_lost),
        WHOLE_TEST(one_whose_warden_has_died_is_given_no_child_any_more),
        WHOLE_TEST(one_that_cannot_read_the_child_says_so_and_ends_its_warden),
        WHOLE_TEST(in_a_namespace_one_that_is_ready_starts_another_warden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A warden that is ready before there is a child, call by call. */
#include "process/warden.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include "../../support/whole_warden.h"
#include "descriptors.h"

#include <setjmp.h>

#include <cmocka.h>

static void starts_the_child_that_it_is_given(void **state)
{
    (void)state;
    with_streams_and_a_lock();
    whole_warden_is_ready();
    assert_did(IS_FORKED, IS_BOUND);
    assert_int_equal(whole_process.kept[0], whole_warden.line);
    whole_process.poll_error = EINTR;
    warden_wakes();
    assert_did_nothing();
    const unsigned before = descriptors_open();
    whole_warden_is_given_the_child(4);
    assert_did("begins a session", "is crown-warden a", "starts app with what it was given",
               OUTLIVES_ITS_KEEPER, SAYS_SO, WATCHES);
    assert_int_equal(descriptors_open(), before + 1); /* the lock's; no stream, no spec */
    keeper_hangs_up();
    assert_did(ENDS_ITS_TREE);
}

static void stays_with_a_terminal(void **state)
{
    (void)state;
    whole_warden.spec.terminal = true;
    whole_warden_is_ready();
    notes_forget();
    whole_warden_is_given_the_child(1);
    assert_did("is crown-warden a", "starts app", OUTLIVES_ITS_KEEPER, SAYS_SO,
               "moves 0 to the group of nobody", WATCHES);
    dies(WHOLE_CHILD, W_STOPCODE(SIGTSTP));
    signal_comes(SIGCHLD);
    assert_did("reaps child, dead or stopped, after 0", "sends 18 to the group of child");
}

static void ends_with_its_keeper(void **state)
{
    (void)state;
    whole_warden_is_ready();
    notes_forget();
    keeper_hangs_up();
    assert_did("ends with 0");
}

static void says_what_it_was_not_given(void **state)
{
    (void)state;
    whole_warden_is_ready();
    notes_forget();
    whole_warden_is_given_the_child(0);
    assert_did("keeper hears start_failed error=1 (run a child: no descriptors left)",
               "ends with 0");
    whole_warden_is_ready();
    notes_forget();
    whole_warden_is_given_nonsense();
    assert_did("keeper hears start_failed error=1 (the child's description has 0 bytes)",
               "ends with 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WARDEN_TEST(starts_the_child_that_it_is_given),
        WARDEN_TEST(stays_with_a_terminal),
        WARDEN_TEST(ends_with_its_keeper),
        WARDEN_TEST(says_what_it_was_not_given),
    };
    return cmocka_run_group_tests_name("a warden that is ready", tests, NULL, NULL);
}

/* How a child is asked to end. */
#include "process/keeper.h"

#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static int wanted_signal;

static bool signalled(void)
{
    return stage.last_signal == wanted_signal;
}

static void until_signal(int signal)
{
    wanted_signal = signal;
    stage_until(signalled);
}

static void start_stubborn(void)
{
    stage.board->mode = "stubborn";
    stage_start();
    stage_until_ticking(0);
}

static void a_child_is_asked_with_its_stop_signal_and_killed_when_its_time_is_up(void **state)
{
    (void)state;
    stage.board->spec.stop_signal = SIGUSR1;
    start_stubborn();
    int64_t asked_ns = clock_boottime_ns();
    stage_stop_in(500 * NS_PER_MS);
    until_signal(SIGUSR1);
    (void)stage_until_message(WIRE_KILLED);
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] > asked_ns);
    assert_int_equal(WTERMSIG(stage_until_message(WIRE_GONE)->status), SIGKILL);
}

static void all_of_a_childs_group_are_asked(void **state)
{
    (void)state;
    stage.board->mode = "family";
    stage_start();
    stage_until_ticking(1);
    stage_stop_in(3600 * NS_PER_S);
    until_signal(SIGTERM);
    stage_stop_in(0);
    stage_until_gone();
}

static void a_lease_that_ends_is_told_once(void **state)
{
    (void)state;
    stage.board->spec.lease_signal = SIGUSR1;
    stage_set_deadlines(300 * NS_PER_MS, 3600 * NS_PER_S, 3601 * NS_PER_S);
    start_stubborn();
    until_signal(SIGUSR1);
    for (int i = 0; i < 20; i++)
        stage_until_ticking(0);
    assert_int_equal(stage.signals, 1);
    assert_null(stage_message(WIRE_KILLED));
    stage_stop_in(0);
    stage_until_gone();
}

static void a_child_that_follows_is_not_killed(void **state)
{
    (void)state;
    stage_start();
    stage_until_ticking(0);
    stage_stop_in(3600 * NS_PER_S);
    const struct wire_message *gone = stage_until_message(WIRE_GONE);
    assert_int_equal(WTERMSIG(gone->status), SIGTERM);
    assert_null(stage_message(WIRE_KILLED));
}

static pid_t held_warden;

static bool warden_is_dead(void)
{
    return stage_state(held_warden) == 'Z';
}

static void what_a_warden_said_last_is_heard_when_it_is_dead_already(void **state)
{
    (void)state;
    stage.board->program = "/bin/false";
    held_warden = stage_start_and_hold_keeper();
    stage_until(warden_is_dead);
    stage_let_keeper_go();
    assert_int_equal(WEXITSTATUS(stage_until_message(WIRE_GONE)->status), 1);
    assert_non_null(stage_message(WIRE_EXITED));
}

static bool child_is_stopped(void)
{
    return stage_state((pid_t)stage_message(WIRE_STARTED)->pid) == 'T';
}

static void a_stopped_child_follows_its_stop_signal(void **state)
{
    (void)state;
    stage_start();
    stage_until_ticking(0);
    stage_kill((pid_t)stage_until_message(WIRE_STARTED)->pid, SIGSTOP);
    stage_until(child_is_stopped); /* else both signals may come at once, and the first wins */
    stage_stop_in(3600 * NS_PER_S);
    assert_int_equal(WTERMSIG(stage_until_message(WIRE_GONE)->status), SIGTERM);
}

static void a_child_is_asked_before_its_lease_ends_with_nobody_helping(void **state)
{
    (void)state;
    stage_set_deadlines(800 * NS_PER_MS, 1200 * NS_PER_MS, 1800 * NS_PER_MS);
    start_stubborn();
    stage_kill(stage_pid("crown-runtime"), SIGSTOP);
    stage_kill(stage.supervisor, SIGSTOP);
    until_signal(SIGTERM);
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] <= stage.board->spec.deadline_ns);
}

static void a_host_that_has_slept_changes_no_instant(void **state)
{
    (void)state;
    stage_sleep_before();
    stage_set_deadlines(800 * NS_PER_MS, 1600 * NS_PER_MS, 3600 * NS_PER_S);
    start_stubborn();
    until_signal(SIGTERM);
    stage_until_gone();
    (void)stage_until_message(WIRE_KILLED);
}

static int64_t processor_time_of(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    return used.tv_sec * NS_PER_S + used.tv_nsec;
}

/* At real-time priority nobody else would have a turn. */
static void a_keeper_sleeps_until_there_is_something_to_do(void **state)
{
    (void)state;
    stage_set_deadlines(3600 * NS_PER_S, 3600 * NS_PER_S, 3600 * NS_PER_S);
    stage_start();
    stage_until_ticking(0);
    pid_t keeper = stage_pid("crown-keeper");
    int64_t from_ns = clock_monotonic_ns();
    int64_t used_ns = processor_time_of(keeper);
    for (int i = 0; i < 50; i++)
        stage_until_ticking(0);
    used_ns = processor_time_of(keeper) - used_ns;
    assert_true(used_ns * 20 < clock_monotonic_ns() - from_ns);
}

static void an_escalating_stop_interrupts_first_and_terminates_then(void **state)
{
    (void)state;
    stage.board->spec.escalate = true;
    start_stubborn();
    stage_stop_in(3600 * NS_PER_S);
    until_signal(SIGINT);
    until_signal(SIGTERM);
    assert_null(stage_message(WIRE_KILLED));
    stage_stop_in(0);
    stage_until_gone();
}

static void a_signal_reaches_the_child_and_stops_nothing(void **state)
{
    (void)state;
    const struct wire_message signal = {.signal = SIGUSR1};
    start_stubborn();
    stage_order(ORDER_SIGNAL, &signal);
    until_signal(SIGUSR1);
    stage_until_ticking(0);
    assert_null(stage_message(WIRE_EXITED));
}

static void a_namespaced_child_is_asked_and_killed_too(void **state)
{
    (void)state;
    stage.board->spec.isolation = CHILD_ISOLATION_PIDNS;
    start_stubborn();
    stage_stop_in(500 * NS_PER_MS);
    until_signal(SIGTERM);
    stage_until_gone();
    (void)stage_until_message(WIRE_GONE);
}

/* It may be killed, but whoever is not its parent does not know that it is there. */
static void who_is_hidden_from_the_keeper_is_killed_by_the_warden(void **state)
{
    (void)state;
    stage.board->unprivileged = true;
    stage.board->hides = true;
    stage.board->mode = "hidden";
    stage_start_as_init();
    stage_until_ticking(0);
    stage_stop_in(0);
    (void)stage_until_message(WIRE_GONE);
    stage_until_gone();
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_child_is_asked_with_its_stop_signal_and_killed_when_its_time_is_up),
        STAGE_TEST_READY(a_child_is_asked_with_its_stop_signal_and_killed_when_its_time_is_up),
        STAGE_TEST(all_of_a_childs_group_are_asked),
        STAGE_TEST_READY(all_of_a_childs_group_are_asked),
        STAGE_TEST(a_lease_that_ends_is_told_once),
        STAGE_TEST_READY(a_lease_that_ends_is_told_once),
        STAGE_TEST(a_child_that_follows_is_not_killed),
        STAGE_TEST_READY(a_child_that_follows_is_not_killed),
        STAGE_TEST(what_a_warden_said_last_is_heard_when_it_is_dead_already),
        STAGE_TEST(a_stopped_child_follows_its_stop_signal),
        STAGE_TEST_READY(a_stopped_child_follows_its_stop_signal),
        STAGE_TEST(a_child_is_asked_before_its_lease_ends_with_nobody_helping),
        STAGE_TEST_READY(a_child_is_asked_before_its_lease_ends_with_nobody_helping),
        STAGE_TEST(a_host_that_has_slept_changes_no_instant),
        STAGE_TEST_READY(a_host_that_has_slept_changes_no_instant),
        STAGE_TEST(a_keeper_sleeps_until_there_is_something_to_do),
        STAGE_TEST_READY(a_keeper_sleeps_until_there_is_something_to_do),
        STAGE_TEST(an_escalating_stop_interrupts_first_and_terminates_then),
        STAGE_TEST_READY(an_escalating_stop_interrupts_first_and_terminates_then),
        STAGE_TEST(a_signal_reaches_the_child_and_stops_nothing),
        STAGE_TEST_READY(a_signal_reaches_the_child_and_stops_nothing),
        STAGE_TEST(who_is_hidden_from_the_keeper_is_killed_by_the_warden),
        STAGE_TEST_READY(who_is_hidden_from_the_keeper_is_killed_by_the_warden),
        STAGE_TEST(a_namespaced_child_is_asked_and_killed_too),
        STAGE_TEST_READY(a_namespaced_child_is_asked_and_killed_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

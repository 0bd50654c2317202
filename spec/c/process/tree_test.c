/* Who dies or stops, and what follows: a tree with daemons in it never outlives its deadline, or
 * the processes that watch it. */
#include "process/supervisor.h"

#include "daemons.h"
#include "traced.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_tree_with_daemons_ends_before_its_deadline_with_nobody_helping(void **state)
{
    (void)state;
    daemons_start_with_deadline();
    daemons_leave_alone();
    daemons_assert_gone_in_time();
}

static void a_deadline_that_is_moved_on_lets_the_tree_live(void **state)
{
    (void)state;
    daemons_start_with_deadline();
    int64_t first_ns = stage.board->spec.deadline_ns;
    const struct wire_message later = {.stop_at_ns = TIME_NEVER,
                                       .kill_at_ns = first_ns + SOON,
                                       .deadline_ns = first_ns + 2 * SOON};
    stage_order(ORDER_DEADLINE, &later);
    const struct wire_message *killed = stage_until_message(WIRE_KILLED);
    assert_non_null(killed);
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] > first_ns);
    assert_true(stage.last_ns[TICK_CHILD] <= later.deadline_ns);
    assert_true(stage.last_ns[TICK_DAEMON] <= later.deadline_ns);
}

static void a_stopped_keeper_does_not_keep_the_tree_past_its_deadline(void **state)
{
    (void)state;
    daemons_start_with_deadline();
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_assert_gone_in_time();
    (void)stage_until_message(WIRE_KEEPER_FAILED);
}

static void
a_stopped_keeper_leaves_the_deadline_to_the_warden_with_nobody_else_helping(void **state)
{
    (void)state;
    daemons_start_with_deadline();
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_leave_alone();
    daemons_assert_gone_in_time();
}

static void a_stopped_warden_does_not_keep_the_tree_past_its_deadline(void **state)
{
    (void)state;
    daemons_start_with_deadline();
    stage_kill(stage_pid("crown-warden"), SIGSTOP);
    daemons_assert_gone_in_time();
    (void)stage_until_message(WIRE_GONE);
}

static void a_stopped_keeper_and_warden_do_not_keep_the_tree_past_its_deadline(void **state)
{
    (void)state;
    daemons_start_with_deadline();
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    stage_kill(stage_pid("crown-warden"), SIGSTOP);
    daemons_assert_gone_in_time();
    (void)stage_until_message(WIRE_KEEPER_FAILED);
}

/* The keeper's end would awaken a warden that was only stopped. */
static void a_child_does_not_outlive_its_deadline_when_all_above_it_are_stopped(void **state)
{
    (void)state;
    stage_set_deadlines(TIME_NEVER, 4 * SOON, 5 * SOON);
    stage_start();
    stage_until_ticking(0);
    stage_hold(stage_pid("crown-warden"));
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_leave_alone();
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] <= stage.board->spec.deadline_ns);
}

static pid_t debugger, traced;

/* By another process: this one reaps whatever it can. */
static void start_traced(void)
{
    int said[2];
    char attached = 0;
    stage_until_ticking(0);
    traced = (pid_t)stage_until_message(WIRE_STARTED)->pid;
    assert_int_equal(pipe2(said, O_CLOEXEC), 0);
    debugger = fork();
    if (debugger == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where an assertion fails */
        attached = ptrace(PTRACE_SEIZE, traced, NULL, NULL) == 0;
        (void)!write(said[1], &attached, 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(said[0], &attached, 1), 1);
    assert_int_equal(close(said[0]) | close(said[1]), 0);
    assert_true(attached);
}

static bool traced_is_gone(void)
{
    return stage_state(traced) == 0;
}

/* It was there all the time, and nothing waits for it. */
static void let_traced_go(void)
{
    assert_int_equal(stage_state(traced), 'Z');
    stage_kill(stage.supervisor, SIGTERM);
    stage_wait_supervisor();
    assert_int_equal(stage_state(traced), 'Z');
    stage_kill(debugger, SIGKILL);
    stage_until(traced_is_gone);
}

static void a_dead_child_that_a_debugger_holds_is_gone(void **state)
{
    (void)state;
    stage_start();
    start_traced();
    stage_stop_in(SOON);
    (void)stage_until_message(WIRE_GONE);
    stage_until_gone();
    let_traced_go();
}

static void an_end_that_a_debugger_holds_is_told_with_its_status(void **state)
{
    (void)state;
    stage_start();
    start_traced();
    stage_kill(traced, SIGKILL);
    assert_int_equal(stage_until_message(WIRE_EXITED)->status, SIGKILL);
    (void)stage_until_message(WIRE_GONE);
    let_traced_go();
}

static void an_end_of_its_own_accord_that_a_debugger_holds_is_no_failure(void **state)
{
    (void)state;
    char sign[64];
    (void)snprintf(sign, sizeof(sign), "%s.quit", stage.fifo);
    stage.board->mode = "quits";
    stage_start();
    start_traced();
    int fd = open(sign, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    const int status = stage_until_message(WIRE_EXITED)->status;
    assert_int_equal(unlink(sign) | close(fd), 0);
    assert_int_equal(status, 0);
    assert_int_equal(stage_until_message(WIRE_GONE)->status, 0);
    let_traced_go();
}

static void a_dead_child_that_a_debugger_holds_does_not_hold_up_the_next_runtime(void **state)
{
    (void)state;
    stage_start_armed(0);
    start_traced();
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_runs(2);
    let_traced_go();
}

static void a_dead_child_that_a_debugger_holds_does_not_hold_up_who_kills_its_keeper(void **state)
{
    (void)state;
    stage_start();
    start_traced();
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    let_traced_go();
}

static void a_host_that_has_slept_changes_no_deadline(void **state)
{
    (void)state;
    stage_sleep_before();
    a_child_does_not_outlive_its_deadline_when_all_above_it_are_stopped(state);
}

static bool child_was_signalled(void)
{
    return stage.last_signal == SIGUSR1;
}

static void a_child_does_not_outlive_a_deadline_that_was_moved_on(void **state)
{
    (void)state;
    stage.board->mode = "stubborn";
    stage_set_deadlines(TIME_NEVER, 20 * SOON, 30 * SOON);
    stage_start();
    stage_until_ticking(0);
    int64_t now_ns = clock_boottime_ns();
    const struct wire_message moved = {.stop_at_ns = TIME_NEVER,
                                       .kill_at_ns = now_ns + 4 * SOON,
                                       .deadline_ns = now_ns + 5 * SOON};
    const struct wire_message signal = {.signal = SIGUSR1};
    stage_order(ORDER_DEADLINE, &moved);
    stage_order(ORDER_SIGNAL, &signal);
    stage_until(child_was_signalled); /* so the warden has heard what came before */
    stage_hold(stage_pid("crown-warden"));
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_leave_alone();
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] <= moved.deadline_ns);
}

static void a_killed_keeper_takes_its_tree_along_and_the_supervisor_says_so(void **state)
{
    (void)state;
    daemons_start();
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    assert_int_equal(stage_until_message(WIRE_KEEPER_FAILED)->id, 1);
    /* Said only when it is true. */
    stage_until_gone();
    assert_null(stage_message(WIRE_GONE));
}

static void a_killed_keeper_takes_a_stopped_warden_s_tree_along(void **state)
{
    (void)state;
    daemons_start();
    stage_kill(stage_pid("crown-warden"), SIGSTOP);
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    stage_until_gone();
}

static void a_killed_keeper_and_its_killed_warden_leave_the_tree_to_the_supervisor(void **state)
{
    (void)state;
    daemons_start();
    pid_t warden = stage_pid("crown-warden"), keeper = stage_pid("crown-keeper");
    stage_kill(warden, SIGSTOP);
    stage_kill(keeper, SIGKILL);
    (void)kill(warden, SIGKILL); /* awake since the keeper's death, it may have ended all of it */
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    assert_true(stage_gone()); /* it is not said before */
}

static void a_killed_warden_takes_its_tree_along_and_the_keeper_says_so(void **state)
{
    (void)state;
    daemons_start();
    stage_kill(stage_pid("crown-warden"), SIGKILL);
    const struct wire_message *gone = stage_until_message(WIRE_GONE);
    assert_int_equal(WTERMSIG(gone->status), SIGKILL);
    stage_until_gone();
}

static uint64_t earliest; /* of the keeper's calls that kill, or reap */

static void note_first(pid_t pid, uint64_t number)
{
    (void)pid;
    if (earliest == 0 &&
        (number == SYS_wait4 || number == SYS_kill || number == SYS_pidfd_send_signal))
        earliest = number;
}

static pid_t watched; /* the warden */

static void kill_watched(void)
{
    (void)kill(watched, SIGKILL);
}

/* Who reaps at ordinary priority may wait for the processor meanwhile. */
static void a_killed_warden_s_tree_is_killed_before_the_warden_is_reaped(void **state)
{
    (void)state;
    daemons_start();
    watched = stage_pid("crown-warden");
    if (!traced_seize(stage_pid("crown-keeper"), kill_watched, note_first))
        skip();
    assert_int_not_equal(earliest, 0);
    assert_int_not_equal(earliest, SYS_wait4);
    stage_until_gone();
}

static void a_killed_supervisor_takes_everything_along(void **state)
{
    (void)state;
    daemons_start();
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_gone();
    stage_until_empty();
}

/* Somebody else has the runtime's end of the keeper's line: its end of file does not come. */
static void
a_killed_supervisor_takes_the_tree_along_when_the_runtime_has_left_a_process(void **state)
{
    (void)state;
    stage.board->forks = true;
    daemons_start();
    pid_t stray = stage_pid("stray");
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_gone();
    stage_kill(stray, SIGKILL);
    stage_until_empty();
}

static void all_but_the_warden_killed_at_once_leave_nothing_behind(void **state)
{
    (void)state;
    daemons_start();
    pid_t keeper = stage_pid("crown-keeper");
    pid_t runtime = stage_pid("crown-runtime");
    stage_kill(stage.supervisor, SIGSTOP); /* so that it cannot react between two of these */
    stage_kill(runtime, SIGKILL);
    stage_kill(keeper, SIGKILL);
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_gone();
    stage_until_empty();
}

static void all_but_the_keeper_killed_at_once_leave_nothing_behind(void **state)
{
    (void)state;
    daemons_start();
    pid_t warden = stage_pid("crown-warden");
    stage_kill(stage.supervisor, SIGSTOP);
    stage_kill(warden, SIGKILL);
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_gone();
    stage_until_empty();
}

static void
a_killed_runtime_takes_its_trees_along_and_ends_the_supervisor_unless_armed(void **state)
{
    (void)state;
    daemons_start();
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_gone();
    stage_wait_supervisor();
    assert_true(WIFEXITED(stage.status));
    assert_int_equal(WEXITSTATUS(stage.status), 128 + SIGKILL);
    assert_int_equal(stage.board->runs, 1);
}

static void a_closed_line_to_the_keeper_kills_the_tree(void **state)
{
    (void)state;
    daemons_start();
    stage_order(ORDER_CLOSE, NULL);
    stage_until_gone();
    assert_true(stage.supervisor > 0);
    /* The keeper could not say GONE. */
    (void)stage_until_message(WIRE_KEEPER_FAILED);
}

static void a_stopped_warden_is_awakened_by_its_keeper_s_death(void **state)
{
    (void)state;
    daemons_start();
    pid_t keeper = stage_pid("crown-keeper");
    stage_kill(stage_pid("crown-warden"), SIGSTOP);
    daemons_leave_alone();
    stage_kill(keeper, SIGKILL);
    stage_until_gone();
}

static void a_stopped_keeper_is_awakened_by_its_supervisor_s_death(void **state)
{
    (void)state;
    daemons_start();
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_gone();
    stage_until_empty();
}

static void a_stopped_keeper_and_warden_are_awakened_by_their_supervisor_s_death(void **state)
{
    (void)state;
    daemons_start();
    pid_t keeper = stage_pid("crown-keeper");
    stage_kill(stage_pid("crown-warden"), SIGSTOP);
    stage_kill(keeper, SIGSTOP);
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_gone();
    stage_until_empty();
}

static void a_tree_goes_when_its_child_ends(void **state)
{
    (void)state;
    stage.board->mode = "ends";
    stage_start();
    const struct wire_message *exited = stage_until_message(WIRE_EXITED);
    assert_int_equal(WEXITSTATUS(exited->status), 7);
    const struct wire_message *gone = stage_until_message(WIRE_GONE);
    assert_int_equal(WEXITSTATUS(gone->status), 7);
    stage_until_gone();
    assert_int_equal(stage.daemons, 1);
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_dead_child_that_a_debugger_holds_is_gone),
        STAGE_TEST_READY(a_dead_child_that_a_debugger_holds_is_gone),
        STAGE_TEST(an_end_of_its_own_accord_that_a_debugger_holds_is_no_failure),
        STAGE_TEST(an_end_that_a_debugger_holds_is_told_with_its_status),
        STAGE_TEST(a_dead_child_that_a_debugger_holds_does_not_hold_up_the_next_runtime),
        STAGE_TEST(a_dead_child_that_a_debugger_holds_does_not_hold_up_who_kills_its_keeper),
        STAGE_TEST(a_tree_with_daemons_ends_before_its_deadline_with_nobody_helping),
        STAGE_TEST_READY(a_tree_with_daemons_ends_before_its_deadline_with_nobody_helping),
        STAGE_TEST(a_deadline_that_is_moved_on_lets_the_tree_live),
        STAGE_TEST_READY(a_deadline_that_is_moved_on_lets_the_tree_live),
        STAGE_TEST(a_stopped_keeper_does_not_keep_the_tree_past_its_deadline),
        STAGE_TEST_READY(a_stopped_keeper_does_not_keep_the_tree_past_its_deadline),
        STAGE_TEST(a_stopped_keeper_leaves_the_deadline_to_the_warden_with_nobody_else_helping),
        STAGE_TEST_READY(
            a_stopped_keeper_leaves_the_deadline_to_the_warden_with_nobody_else_helping),
        STAGE_TEST(a_stopped_warden_does_not_keep_the_tree_past_its_deadline),
        STAGE_TEST_READY(a_stopped_warden_does_not_keep_the_tree_past_its_deadline),
        STAGE_TEST(a_stopped_keeper_and_warden_do_not_keep_the_tree_past_its_deadline),
        STAGE_TEST_READY(a_stopped_keeper_and_warden_do_not_keep_the_tree_past_its_deadline),
        STAGE_TEST(a_child_does_not_outlive_its_deadline_when_all_above_it_are_stopped),
        STAGE_TEST_READY(a_child_does_not_outlive_its_deadline_when_all_above_it_are_stopped),
        STAGE_TEST(a_host_that_has_slept_changes_no_deadline),
        STAGE_TEST_READY(a_host_that_has_slept_changes_no_deadline),
        STAGE_TEST(a_child_does_not_outlive_a_deadline_that_was_moved_on),
        STAGE_TEST_READY(a_child_does_not_outlive_a_deadline_that_was_moved_on),
        STAGE_TEST(a_killed_keeper_takes_its_tree_along_and_the_supervisor_says_so),
        STAGE_TEST_READY(a_killed_keeper_takes_its_tree_along_and_the_supervisor_says_so),
        STAGE_TEST(a_killed_keeper_takes_a_stopped_warden_s_tree_along),
        STAGE_TEST_READY(a_killed_keeper_takes_a_stopped_warden_s_tree_along),
        STAGE_TEST(a_killed_keeper_and_its_killed_warden_leave_the_tree_to_the_supervisor),
        STAGE_TEST_READY(a_killed_keeper_and_its_killed_warden_leave_the_tree_to_the_supervisor),
        STAGE_TEST(a_killed_warden_takes_its_tree_along_and_the_keeper_says_so),
        STAGE_TEST_READY(a_killed_warden_takes_its_tree_along_and_the_keeper_says_so),
        STAGE_TEST(a_killed_warden_s_tree_is_killed_before_the_warden_is_reaped),
        STAGE_TEST(a_killed_supervisor_takes_everything_along),
        STAGE_TEST_READY(a_killed_supervisor_takes_everything_along),
        STAGE_TEST(a_killed_supervisor_takes_the_tree_along_when_the_runtime_has_left_a_process),
        STAGE_TEST_READY(
            a_killed_supervisor_takes_the_tree_along_when_the_runtime_has_left_a_process),
        STAGE_TEST(all_but_the_warden_killed_at_once_leave_nothing_behind),
        STAGE_TEST_READY(all_but_the_warden_killed_at_once_leave_nothing_behind),
        STAGE_TEST(all_but_the_keeper_killed_at_once_leave_nothing_behind),
        STAGE_TEST_READY(all_but_the_keeper_killed_at_once_leave_nothing_behind),
        STAGE_TEST(a_killed_runtime_takes_its_trees_along_and_ends_the_supervisor_unless_armed),
        STAGE_TEST_READY(
            a_killed_runtime_takes_its_trees_along_and_ends_the_supervisor_unless_armed),
        STAGE_TEST(a_closed_line_to_the_keeper_kills_the_tree),
        STAGE_TEST_READY(a_closed_line_to_the_keeper_kills_the_tree),
        STAGE_TEST(a_stopped_warden_is_awakened_by_its_keeper_s_death),
        STAGE_TEST_READY(a_stopped_warden_is_awakened_by_its_keeper_s_death),
        STAGE_TEST(a_stopped_keeper_is_awakened_by_its_supervisor_s_death),
        STAGE_TEST_READY(a_stopped_keeper_is_awakened_by_its_supervisor_s_death),
        STAGE_TEST(a_stopped_keeper_and_warden_are_awakened_by_their_supervisor_s_death),
        STAGE_TEST_READY(a_stopped_keeper_and_warden_are_awakened_by_their_supervisor_s_death),
        STAGE_TEST(a_tree_goes_when_its_child_ends),
        STAGE_TEST_READY(a_tree_goes_when_its_child_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

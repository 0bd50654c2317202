#include "process/supervisor.h"

#include "stage.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/process_stat.h"
#include "process/requests.h"

/* Longer than a busy host may keep a runtime from its next turn, shorter than anybody's patience.
 */
#define SILENCE (2 * NS_PER_S)

static void a_silent_runtime_is_replaced_under_the_same_token(void **state)
{
    (void)state;
    stage_start_armed(SILENCE);
    pid_t first = stage_pid("crown-runtime");
    stage_order(ORDER_HANG, NULL);
    stage_until_runs(2);
    assert_int_equal(strlen(stage.board->token[0]), 32);
    assert_string_equal(stage.board->token[0], stage.board->token[1]);
    assert_int_equal(stage.board->restarts, 1);
    assert_int_not_equal(stage_pid("crown-runtime"), first);
}

static void a_stopped_runtime_is_replaced(void **state)
{
    (void)state;
    stage_start_armed(SILENCE);
    stage_kill(stage_pid("crown-runtime"), SIGSTOP);
    stage_until_runs(2);
}

static void a_runtime_that_was_not_armed_may_be_silent(void **state)
{
    (void)state;
    stage.board->silence_ns = 10 * NS_PER_MS;
    stage_start();
    stage_until_ticking(0);
    stage_order(ORDER_HANG, NULL);
    for (int i = 0; i < 20; i++)
        stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
}

static void a_runtime_that_is_armed_no_more_may_be_silent(void **state)
{
    (void)state;
    stage_start_armed(SILENCE);
    stage_order(ORDER_DISARM, NULL);
    stage_order(ORDER_HANG, NULL);
    int64_t until_ns = clock_monotonic_ns() + SILENCE * 3 / 2;
    while (clock_monotonic_ns() < until_ns)
        stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
}

static pid_t dead_runtime;

static bool runtime_is_dead(void)
{
    return stage_state(dead_runtime) == 'Z';
}

/* It was disarmed before it died, and the supervisor hears of both at once. */
static void what_a_runtime_said_last_counts(void **state)
{
    (void)state;
    stage_start_armed(0);
    dead_runtime = stage_pid("crown-runtime");
    stage_kill(stage.supervisor, SIGSTOP);
    stage_order(ORDER_DISARM, NULL);
    stage_kill(dead_runtime, SIGKILL);
    stage_until(runtime_is_dead);
    stage_kill(stage.supervisor, SIGCONT);
    stage_wait_supervisor();
    assert_int_equal(WEXITSTATUS(stage.status), 128 + SIGKILL);
    assert_int_equal(stage.board->runs, 1);
}

static void start_armed_with_daemons(void)
{
    stage.board->mode = "daemons";
    stage_start_armed(0);
    stage_until_ticking(3);
}

/* The second child's daemons are three others: of the first three none ticks on. */
static void assert_replaced_with_its_tree(void)
{
    stage_until_runs(2);
    stage_until_ticking(6);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(kill(stage.daemon_pids[i], 0), -1);
}

static void a_killed_runtime_is_replaced_after_its_tree_is_gone(void **state)
{
    (void)state;
    start_armed_with_daemons();
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    assert_replaced_with_its_tree();
}

static void what_a_runtime_has_forked_dies_with_it(void **state)
{
    (void)state;
    stage.board->forks = true;
    stage_start_armed(0);
    pid_t stray = stage_pid("stray");
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_runs(2);
    assert_int_equal(kill(stray, 0), -1);
    /* So does what the second one has forked, or will have: a kill would leave it to this test. */
    stage_kill(stage.supervisor, SIGTERM);
    stage_wait_supervisor();
}

static void a_stopped_keeper_does_not_hold_up_the_next_runtime(void **state)
{
    (void)state;
    start_armed_with_daemons();
    stage_kill(stage_pid("crown-keeper"), SIGSTOP); /* and no deadline that would end it */
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    assert_replaced_with_its_tree();
}

static int64_t wanted_ns;

static bool is_past(void)
{
    return clock_boottime_ns() > wanted_ns;
}

static bool both_have_started(void)
{
    return stage.board->started == 2;
}

/* As of thousands that need longer to end than one of them: the first one ends late, though before
 * anybody loses patience, and the second one is asked of a while after that. */
static void keepers_are_waited_for_while_others_end(void **state)
{
    (void)state;
    pid_t keepers[2] = {0};
    stage.board->children = 2;
    stage_start_armed(0);
    stage_until(both_have_started);
    for (int i = 0, found = 0; i < stage.board->logged && found < 2; i++)
        if (stage.board->log[i].type == WIRE_STARTED)
            keepers[found++] =
                process_stat(process_stat((pid_t)stage.board->log[i].pid).parent).parent;
    stage_kill(keepers[0], SIGSTOP);
    stage_kill(keepers[1], SIGSTOP);
    const int64_t death_ns = clock_boottime_ns();
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    wanted_ns = death_ns + 1500 * NS_PER_MS;
    stage_until(is_past);
    stage_kill(keepers[0], SIGCONT);
    wanted_ns = death_ns + 2300 * NS_PER_MS;
    stage_until(is_past);
    assert_int_equal(stage_state(keepers[0]), '\0');
    assert_int_equal(stage_state(keepers[1]), 'T');
    stage_until_runs(2); /* not for ever */
}

static void runtimes_are_replaced_again_and_again(void **state)
{
    (void)state;
    stage_start_armed(0);
    for (int runs = 1; runs <= 4; runs++) {
        stage_until_runs(runs);
        stage_until_ticking(0);
        stage_kill(stage_pid("crown-runtime"), SIGKILL);
    }
    stage_until_runs(5);
    assert_int_equal(stage.board->restarts, 4);
}

static void a_runtime_that_ends_before_it_is_armed_ends_the_supervisor_with_its_code(void **state)
{
    (void)state;
    stage.board->crash = true;
    stage_start();
    stage_wait_supervisor();
    assert_true(WIFEXITED(stage.status));
    assert_int_equal(WEXITSTATUS(stage.status), 3);
    assert_int_equal(stage.board->runs, 1);
}

static void a_signal_is_passed_on_and_the_runtime_s_exit_is_the_supervisor_s(void **state)
{
    (void)state;
    start_armed_with_daemons();
    stage_kill(stage.supervisor, SIGTERM);
    stage_wait_supervisor();
    assert_int_equal(WEXITSTATUS(stage.status), 5);
    assert_int_equal(stage_message(WIRE_STOP)->signal, SIGTERM);
    stage_until_gone();
    stage_until_empty();
}

static void until_later(int64_t ns)
{
    wanted_ns = clock_boottime_ns() + ns;
    stage_until(is_past);
}

static void two_interrupts_end_even_a_runtime_that_hangs(void **state)
{
    (void)state;
    stage_start_armed(3600 * NS_PER_S);
    stage_order(ORDER_HANG, NULL);
    stage_kill(stage.supervisor, SIGINT);
    until_later(REQUESTS_SAME_NS + 100 * NS_PER_MS);
    stage_kill(stage.supervisor, SIGINT);
    stage_until_gone();
    stage_wait_supervisor();
    assert_int_equal(WEXITSTATUS(stage.status), 128 + SIGINT);
}

static void until_told_of(int signal)
{
    while (stage_message(WIRE_STOP) == NULL || stage_message(WIRE_STOP)->signal != signal)
        stage_until_ticking(0);
}

/* However often: they are no second thought, whatever else is sent beside them. */
static void terms_never_end_at_once(void **state)
{
    (void)state;
    stage.board->stay = true;
    stage_start_armed(0);
    for (int i = 0; i < 3; i++) {
        stage_kill(stage.supervisor, SIGTERM);
        until_later(REQUESTS_SAME_NS * 2 / 3);
    }
    stage_kill(stage.supervisor, SIGINT);
    until_told_of(SIGTERM);
    stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
    assert_null(stage_message(WIRE_GONE));
}

static void a_hangup_ends_nothing(void **state)
{
    (void)state;
    stage.board->own_group = true;
    stage_start();
    stage_until_ticking(0);
    stage_kill(stage.supervisor, SIGHUP);
    stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
    assert_null(stage_message(WIRE_STOP));
}

/* Before the supervisor starts, as a shell's `<&- >&- 2>&-` leaves it. */
static void
a_supervisor_without_standard_streams_keeps_its_own_descriptors_from_the_child(void **state)
{
    (void)state;
    struct stage_world world;
    int saved[3];
    stage.board->mode = "world";
    for (int fd = 0; fd < 3; fd++) {
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
        assert_int_equal(close(fd), 0);
    }
    stage_start();
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(saved[fd], fd); /* else no assertion could be seen to fail */
    for (int fd = 0; fd < 3; fd++)
        assert_int_equal(close(saved[fd]), 0);
    stage_world(&world);
    assert_int_equal(world.fd_count, 3);
    for (int fd = 0; fd < 3; fd++) {
        assert_int_equal(world.fds[fd], fd);
        assert_true(world.null[fd]);
    }
}

/* As process 1 of a PID namespace. */

static void start_daemons_as_init(void)
{
    stage.board->mode = "daemons";
    stage_start_as_init();
    stage_until_ticking(3);
}

static void assert_told_and_gone(void)
{
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    stage_until_gone();
}

static void as_init_a_killed_keeper_takes_its_tree_along_before_it_is_said(void **state)
{
    (void)state;
    start_daemons_as_init();
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    assert_told_and_gone();
}

static void as_init_a_killed_keeper_takes_a_stopped_warden_s_tree_along(void **state)
{
    (void)state;
    start_daemons_as_init();
    stage_kill(stage_pid("crown-warden"), SIGSTOP);
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    assert_told_and_gone();
}

static void as_init_a_runtime_is_replaced_and_a_signal_ends_all(void **state)
{
    (void)state;
    stage.board->arm = true;
    stage_start_as_init();
    stage_until_ticking(0);
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_runs(2);
    stage_until_ticking(0);
    stage_kill(stage.supervisor, SIGTERM);
    stage_wait_supervisor();
    assert_int_equal(WEXITSTATUS(stage.status), 5);
    stage_until_gone();
}

static void as_init_the_supervisor_leaves_strangers_alone(void **state)
{
    (void)state;
    stage.board->stranger = true;
    start_daemons_as_init();
    pid_t stranger = stage_pid("stranger");
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    assert_told_and_gone();
    assert_int_equal(stage_pid("stranger"), stranger);
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_silent_runtime_is_replaced_under_the_same_token),
        STAGE_TEST(a_stopped_runtime_is_replaced),
        STAGE_TEST(a_runtime_that_was_not_armed_may_be_silent),
        STAGE_TEST(a_runtime_that_is_armed_no_more_may_be_silent),
        STAGE_TEST(what_a_runtime_said_last_counts),
        STAGE_TEST(a_killed_runtime_is_replaced_after_its_tree_is_gone),
        STAGE_TEST(what_a_runtime_has_forked_dies_with_it),
        STAGE_TEST(a_stopped_keeper_does_not_hold_up_the_next_runtime),
        STAGE_TEST(keepers_are_waited_for_while_others_end),
        STAGE_TEST(runtimes_are_replaced_again_and_again),
        STAGE_TEST(a_runtime_that_ends_before_it_is_armed_ends_the_supervisor_with_its_code),
        STAGE_TEST(a_signal_is_passed_on_and_the_runtime_s_exit_is_the_supervisor_s),
        STAGE_TEST(two_interrupts_end_even_a_runtime_that_hangs),
        STAGE_TEST(terms_never_end_at_once),
        STAGE_TEST(a_hangup_ends_nothing),
        STAGE_TEST(a_supervisor_without_standard_streams_keeps_its_own_descriptors_from_the_child),
        STAGE_TEST(as_init_a_killed_keeper_takes_its_tree_along_before_it_is_said),
        STAGE_TEST(as_init_a_killed_keeper_takes_a_stopped_warden_s_tree_along),
        STAGE_TEST(as_init_a_runtime_is_replaced_and_a_signal_ends_all),
        STAGE_TEST(as_init_the_supervisor_leaves_strangers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

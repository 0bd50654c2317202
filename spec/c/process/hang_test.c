/* A start that hangs in the kernel, as on a network disk that does not answer. Here the program is
 * leased (fcntl(2)): whoever executes it waits until the test gives the lease back. */
#include "process/spawn.h"

#include "daemons.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAR (3600 * NS_PER_S)

static char program[48];
static int lease;
static pid_t warden, child;

static void copy_program(void)
{
    struct stat status;
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(from >= 0 && to >= 0 && fstat(from, &status) == 0);
    while (status.st_size > 0) {
        ssize_t copied = sendfile(to, from, NULL, (size_t)status.st_size);
        assert_true(copied > 0);
        status.st_size -= copied;
    }
    assert_int_equal(close(from) | close(to), 0);
}

static int open_stage(void **state)
{
    int result = stage_open(state);
    (void)snprintf(program, sizeof(program), "%s/program", stage.folder);
    return result;
}

static int open_stage_ready(void **state)
{
    int result = open_stage(state);
    stage.board->ready = true;
    return result;
}

static void let_start(void)
{
    assert_int_equal(fcntl(lease, F_SETLEASE, F_UNLCK), 0);
}

static int close_stage(void **state)
{
    int removed = unlink(program) | close(lease);
    return stage_close(state) | removed;
}

/* The kernel asks who has the lease to give it up. */
static bool is_hanging(void)
{
    return fcntl(lease, F_GETLEASE) != F_WRLCK;
}

static void start_hanging(void)
{
    (void)signal(SIGIO, SIG_IGN); /* so it asks */
    copy_program();
    lease = open(program, O_RDONLY | O_CLOEXEC);
    assert_true(lease >= 0);
    assert_int_equal(fcntl(lease, F_SETLEASE, F_WRLCK), 0);
    stage.board->program = program;
    stage_start();
    stage_until(is_hanging);
    warden = stage_child_of(stage_pid("crown-keeper"));
    child = stage_child_of(warden);
    assert_true(warden > 0 && child > 0);
}

static bool is_dead(pid_t pid)
{
    char state = stage_state(pid);
    return state == '\0' || state == 'Z';
}

static bool both_are_dead(void)
{
    return is_dead(warden) && is_dead(child);
}

static int64_t wanted_ns;

static bool is_past(void)
{
    return clock_boottime_ns() > wanted_ns;
}

/* Past the deadline that the start began with. It has to hang, and the later one to come, before
 * that one kills: also on a busy host. */
static void hang_on_under_a_later_deadline(int64_t kill_ns, int64_t deadline_ns)
{
    stage_set_deadlines(TIME_NEVER, 5 * SOON, 6 * SOON);
    start_hanging();
    const int64_t first_ns = stage.board->spec.deadline_ns;
    const struct wire_message later = {.stop_at_ns = TIME_NEVER,
                                       .kill_at_ns = first_ns + kill_ns,
                                       .deadline_ns = first_ns + deadline_ns};
    stage_order(ORDER_DEADLINE, &later);
    stage.board->spec.deadline_ns = later.deadline_ns;
    wanted_ns = first_ns;
    stage_until(is_past);
    let_start();
    stage_until_ticking(0);
}

static void it_goes_on_for_as_long_as_its_deadline_is_moved_on(void **state)
{
    (void)state;
    hang_on_under_a_later_deadline(FAR, 2 * FAR);
    assert_null(stage_message(WIRE_KILLED));
    stage_stop_in(0);
    stage_until_gone();
}

static void the_deadline_that_it_was_moved_on_to_counts(void **state)
{
    (void)state;
    hang_on_under_a_later_deadline(3 * SOON, 4 * SOON);
    stage_hold(stage_pid("crown-warden"));
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_leave_alone();
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] <= stage.board->spec.deadline_ns);
}

/* The keeper hears of the start no more, and its end awakens no warden that is held. */
static void the_last_deadline_counts_where_the_keeper_cannot_tell_of_it(void **state)
{
    (void)state;
    stage_set_deadlines(TIME_NEVER, 5 * SOON, 6 * SOON);
    start_hanging();
    stage_hold(stage_pid("crown-keeper"));
    let_start();
    stage_until_ticking(0);
    stage_hold(warden);
    daemons_leave_alone();
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] <= stage.board->spec.deadline_ns);
}

/* It may come so often while nobody hears of it that the warden's line is full. */
static void a_deadline_is_moved_on_however_often(void **state)
{
    (void)state;
    stage_set_deadlines(TIME_NEVER, 4 * SOON, 5 * SOON);
    start_hanging();
    const struct wire_message signal = {.signal = SIGUSR1};
    struct wire_message later = {
        .stop_at_ns = TIME_NEVER, .kill_at_ns = TIME_NEVER, .deadline_ns = TIME_NEVER};
    for (int i = 0; i < 1000; i++)
        stage_order(ORDER_DEADLINE, &later);
    stage_order(ORDER_SIGNAL, &signal);
    let_start();
    const struct wire_message *gone = stage_until_message(WIRE_GONE);
    assert_int_equal(WTERMSIG(gone->status), SIGUSR1);
}

static void assert_dead_in_time(void)
{
    stage_until(both_are_dead);
    assert_true(clock_boottime_ns() <= stage.board->spec.deadline_ns);
    let_start();
    stage_until(stage_gone);
    assert_int_equal(stage.count[TICK_CHILD], 0);
}

static void it_ends_before_its_deadline(void **state)
{
    (void)state;
    stage_set_deadlines(TIME_NEVER, 4 * SOON, 8 * SOON);
    start_hanging();
    assert_dead_in_time();
}

static void it_ends_before_its_deadline_when_all_above_it_are_stopped(void **state)
{
    (void)state;
    stage_set_deadlines(TIME_NEVER, 4 * SOON, 8 * SOON);
    start_hanging();
    stage_kill(warden, SIGSTOP);
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_leave_alone();
    assert_dead_in_time();
}

/* Though no child was there to be killed. */
static void one_that_was_killed_is_no_success(void **state)
{
    (void)state;
    start_hanging();
    stage_stop_in(0);
    assert_int_equal(WTERMSIG(stage_until_message(WIRE_GONE)->status), SIGKILL);
    assert_null(stage_message(WIRE_STARTED));
}

static void one_whose_warden_dies_is_no_success(void **state)
{
    (void)state;
    start_hanging();
    stage_kill(warden, SIGKILL);
    assert_int_equal(WTERMSIG(stage_until_message(WIRE_GONE)->status), SIGKILL);
}

static void it_ends_with_its_keeper(void **state)
{
    (void)state;
    start_hanging();
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    assert_dead_in_time();
}

static void it_ends_with_its_supervisor(void **state)
{
    (void)state;
    start_hanging();
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_empty();
    assert_dead_in_time();
}

static void it_ends_with_its_keeper_in_a_namespace_too(void **state)
{
    stage.board->spec.isolation = CHILD_ISOLATION_PIDNS;
    it_ends_with_its_keeper(state);
}

static void it_ends_with_its_keeper_though_it_holds_a_lock(void **state)
{
    (void)snprintf(stage.board->lock, sizeof(stage.board->lock), "%s/lock", stage.folder);
    it_ends_with_its_keeper(state);
    assert_int_equal(unlink(stage.board->lock), 0);
}

#define HANG_TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
#define HANG_TEST_READY(name)                                                                      \
    {                                                                                              \
#name "_ready", name, open_stage_ready, close_stage, NULL                                  \
    }

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        HANG_TEST(it_goes_on_for_as_long_as_its_deadline_is_moved_on),
        HANG_TEST_READY(it_goes_on_for_as_long_as_its_deadline_is_moved_on),
        HANG_TEST(the_deadline_that_it_was_moved_on_to_counts),
        HANG_TEST_READY(the_deadline_that_it_was_moved_on_to_counts),
        HANG_TEST(the_last_deadline_counts_where_the_keeper_cannot_tell_of_it),
        HANG_TEST_READY(the_last_deadline_counts_where_the_keeper_cannot_tell_of_it),
        HANG_TEST(a_deadline_is_moved_on_however_often),
        HANG_TEST(it_ends_before_its_deadline),
        HANG_TEST_READY(it_ends_before_its_deadline),
        HANG_TEST(it_ends_before_its_deadline_when_all_above_it_are_stopped),
        HANG_TEST_READY(it_ends_before_its_deadline_when_all_above_it_are_stopped),
        HANG_TEST(one_that_was_killed_is_no_success),
        HANG_TEST(one_whose_warden_dies_is_no_success),
        HANG_TEST(it_ends_with_its_keeper),
        HANG_TEST_READY(it_ends_with_its_keeper),
        HANG_TEST(it_ends_with_its_supervisor),
        HANG_TEST_READY(it_ends_with_its_supervisor),
        HANG_TEST(it_ends_with_its_keeper_in_a_namespace_too),
        HANG_TEST(it_ends_with_its_keeper_though_it_holds_a_lock),
        HANG_TEST_READY(it_ends_with_its_keeper_though_it_holds_a_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

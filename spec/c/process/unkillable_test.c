/* A child that may not be killed, as it has become another user: it counts as alive. */
#include "process/supervisor.h"

#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define SOON (600 * NS_PER_MS)

static char program[80];

/* This very program, as one that makes root of whoever starts it. */
static void make_setuid(void)
{
    char bytes[1 << 16];
    ssize_t size;
    (void)snprintf(program, sizeof(program), "%s/sudo", stage.folder);
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(from >= 0 && to >= 0);
    while ((size = read(from, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(to, bytes, (size_t)size), size);
    assert_int_equal(fchmod(to, 04755), 0);
    assert_int_equal(close(from) | close(to), 0);
}

static int open_stage(void **state)
{
    if (stage_open(state) < 0)
        return -1;
    make_setuid();
    stage.board->program = program;
    stage.board->mode = "root";
    stage.board->unprivileged = true;
    return 0;
}

static int close_stage(void **state)
{
    (void)unlink(program);
    return stage_close(state);
}

static pid_t child_pid(void)
{
    return (pid_t)stage_until_message(WIRE_STARTED)->pid;
}

/* And the runtime knows that it has a child. */
static void start(void)
{
    stage_start();
    stage_until_ticking(0);
    (void)child_pid();
}

static void stop_at_once(void)
{
    const struct wire_message stop = {.kill_at_ns = clock_boottime_ns()};
    stage_order(ORDER_STOP, &stop);
}

static void assert_ticks_on_and_nobody_says_that_it_is_gone(void)
{
    for (int i = 0; i < 20; i++)
        stage_until_ticking(0);
    assert_null(stage_message(WIRE_GONE));
    assert_null(stage_message(WIRE_KEEPER_FAILED));
}

static void a_keeper_says_so_and_waits_for_its_end(void **state)
{
    (void)state;
    start();
    stop_at_once();
    const struct wire_message *unkillable = stage_until_message(WIRE_UNKILLABLE);
    assert_int_equal(unkillable->pid, child_pid());
    assert_int_equal(unkillable->error, EPERM);
    assert_ticks_on_and_nobody_says_that_it_is_gone();
    stage_kill(child_pid(), SIGKILL); /* the test is root */
    (void)stage_until_message(WIRE_GONE);
    stage_until_gone();
}

static bool keeper_is_gone(void)
{
    return stage_find("crown-keeper") == 0 && stage_find("crown-warden") == 0;
}

static bool warden_is_left(void)
{
    return stage_find("crown-keeper") == 0 && stage_find("crown-warden") != 0;
}

static void a_warden_whose_keeper_is_dead_waits_and_the_supervisor_for_it(void **state)
{
    (void)state;
    start();
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    stage_until(warden_is_left);
    assert_ticks_on_and_nobody_says_that_it_is_gone();
    assert_true(warden_is_left());
    stage_kill(child_pid(), SIGKILL);
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    stage_until_gone();
}

static void a_supervisor_that_inherits_it_waits_too(void **state)
{
    (void)state;
    start();
    stage_kill(stage.supervisor, SIGSTOP); /* until both are dead */
    pid_t warden = stage_pid("crown-warden");
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    stage_kill(warden, SIGKILL);
    stage_kill(stage.supervisor, SIGCONT);
    stage_until(keeper_is_gone);
    assert_ticks_on_and_nobody_says_that_it_is_gone();
    stage_kill(child_pid(), SIGKILL);
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    stage_until_gone();
}

static void past_its_deadline_it_is_the_supervisor_s(void **state)
{
    (void)state;
    stage_set_deadlines(TIME_NEVER, 3 * SOON, 3 * SOON + SOON / 2);
    start();
    (void)stage_until_message(WIRE_UNKILLABLE);
    stage_until(keeper_is_gone);
    assert_ticks_on_and_nobody_says_that_it_is_gone();
    stage_kill(child_pid(), SIGKILL);
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    stage_until_gone();
}

/* Neither the next runtime nor the end of the supervisor comes before its end. */
static void it_keeps_the_supervisor_from_going_on(void **state)
{
    (void)state;
    stage.board->arm = true;
    start();
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until(warden_is_left); /* the supervisor has lost its patience with the keeper */
    for (int i = 0; i < 50; i++)
        stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
    stage_kill(stage.supervisor, SIGTERM);
    assert_ticks_on_and_nobody_says_that_it_is_gone();
    assert_true(stage.supervisor > 0);
    stage_kill(child_pid(), SIGKILL);
    stage_wait_supervisor();
    assert_int_equal(stage.board->runs, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(a_keeper_says_so_and_waits_for_its_end),
        TEST(a_warden_whose_keeper_is_dead_waits_and_the_supervisor_for_it),
        TEST(a_supervisor_that_inherits_it_waits_too),
        TEST(past_its_deadline_it_is_the_supervisor_s),
        TEST(it_keeps_the_supervisor_from_going_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

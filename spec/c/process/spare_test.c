/* A keeper that is ready, with its warden, before there is a child. */
#include "process/launch.h"

#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/keeper.h"
#include "process/wire.h"

static pid_t spare;

static void start_ready(void)
{
    stage.board->later = stage.board->ready = true;
    stage_start();
    spare = stage_pid("crown-spare");
}

static bool has_warden(void)
{
    return stage_child_of(spare) != 0;
}

static bool is_gone(void)
{
    return stage_state(spare) == '\0';
}

static void start_child(void)
{
    stage_order(ORDER_START, NULL);
    stage_until_ticking(0);
}

static void the_child_is_given_to_who_is_ready(void **state)
{
    (void)state;
    start_ready();
    stage_until(has_warden);
    pid_t warden = stage_child_of(spare);
    start_child();
    assert_int_equal(stage_pid("crown-keeper"), spare);
    assert_int_equal(stage_pid("crown-warden"), warden);
}

static void who_was_stopped_while_it_waited_is_awakened(void **state)
{
    (void)state;
    start_ready();
    stage_until(has_warden);
    stage_kill(stage_child_of(spare), SIGSTOP);
    stage_kill(spare, SIGSTOP);
    start_child();
    assert_int_equal(stage_pid("crown-keeper"), spare);
}

static void one_that_died_is_replaced(void **state)
{
    (void)state;
    start_ready();
    stage_kill(spare, SIGKILL);
    stage_until(is_gone);
    start_child();
    assert_int_not_equal(stage_pid("crown-keeper"), spare);
}

static void one_whose_warden_died_ends(void **state)
{
    (void)state;
    start_ready();
    stage_until(has_warden);
    stage_kill(stage_child_of(spare), SIGKILL);
    stage_until(is_gone);
    start_child();
    assert_int_not_equal(stage_pid("crown-keeper"), spare);
}

static void it_ends_before_its_supervisor(void **state)
{
    (void)state;
    start_ready();
    stage_until(has_warden);
    pid_t warden = stage_child_of(spare);
    stage_kill(stage.supervisor, SIGTERM);
    stage_wait_supervisor();
    assert_int_equal(stage_state(spare), '\0');
    assert_int_equal(stage_state(warden), '\0');
}

static void it_ends_with_a_supervisor_that_is_killed(void **state)
{
    (void)state;
    start_ready();
    stage_until(has_warden);
    stage_kill(spare, SIGSTOP);
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_empty();
}

static void it_ends_with_its_runtime(void **state)
{
    (void)state;
    stage.board->arm = true;
    start_ready();
    stage_until(has_warden);
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_runs(2);
    assert_int_equal(stage_state(spare), '\0');
    stage_until(is_gone);
    spare = stage_pid("crown-spare");
    start_child();
    assert_int_equal(stage_pid("crown-keeper"), spare);
}

/* Of a user that may have no other process. */
static void play_spare_alone(int line) __attribute__((noreturn));
static void play_spare_alone(int line)
{
    struct warden_note warden = {0};
    const uid_t user = 1000000 + (uid_t)getpid();
    const struct rlimit one = {1, 1};
    const struct keeper_home home = {.supervisor = getppid(), .warden = &warden};
    if (setrlimit(RLIMIT_NPROC, &one) < 0 || (geteuid() == 0 && setresuid(user, user, user) < 0))
        _exit(9);
    keeper_wait(line, &home);
}

static void one_without_a_warden_leaves_its_child_to_the_supervisor(void **state)
{
    (void)state;
    int ends[2], status;
    const struct wire_message start = {.type = WIRE_START_KEEPER, .id = 1};
    assert_int_equal(wire_pair(ends, NULL), 0);
    assert_int_equal(wire_send(ends[0], &start, &ends[1], 1, NULL), 0); /* on the line already */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        play_spare_alone(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1); /* 0 says that the child's end was told */
}

static pid_t warden;

static bool warden_is_dead(void)
{
    return stage_state(warden) == 'Z';
}

static pid_t start_spare(int line, const int *others)
{
    struct warden_note note = {0};
    const struct keeper_home home = {.supervisor = getpid(), .warden = &note};
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    (void)close(others[0]);
    (void)close(others[1]);
    keeper_wait(line, &home);
}

static void hand_over_true(int line, int runtime)
{
    char *const argv[] = {"/bin/true", NULL};
    char *const envp[] = {NULL};
    struct child_spec spec = stage.board->spec;
    const struct wire_message start = {.type = WIRE_START_KEEPER, .id = 1};
    spec.argv = argv;
    spec.envp = envp;
    spec.label = "test";
    int fds[] = {runtime, child_spec_write(&spec, NULL)};
    assert_true(fds[1] >= 0);
    assert_int_equal(wire_send(line, &start, fds, 2, NULL), 0);
    assert_int_equal(close(fds[1]), 0);
}

static int heard_from;
static struct wire_message heard;

static bool hears(void)
{
    return wire_receive(heard_from, &heard, NULL, NULL, NULL) > 0;
}

/* Both find it at once: the child, and that its warden is dead. */
static void one_whose_warden_died_as_its_child_came_has_another_one(void **state)
{
    (void)state;
    int line[2], runtime[2];
    assert_int_equal(wire_pair(line, NULL) | wire_pair(runtime, NULL), 0);
    spare = start_spare(line[1], (const int[]){line[0], runtime[0]});
    stage_until(has_warden);
    warden = stage_child_of(spare);
    stage_hold(spare);
    stage_kill(warden, SIGKILL);
    stage_until(warden_is_dead);
    hand_over_true(line[0], runtime[1]);
    stage_let_go(spare);
    heard_from = runtime[0];
    stage_until(hears);
    assert_int_equal(heard.type, WIRE_STARTED);
    stage_until(is_gone);
    for (int i = 0; i < 2; i++)
        assert_int_equal(close(line[i]) | close(runtime[i]), 0);
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(the_child_is_given_to_who_is_ready),
        STAGE_TEST(who_was_stopped_while_it_waited_is_awakened),
        STAGE_TEST(one_that_died_is_replaced),
        STAGE_TEST(one_whose_warden_died_ends),
        STAGE_TEST(it_ends_before_its_supervisor),
        STAGE_TEST(it_ends_with_a_supervisor_that_is_killed),
        STAGE_TEST(it_ends_with_its_runtime),
        STAGE_TEST(one_whose_warden_died_as_its_child_came_has_another_one),
        cmocka_unit_test(one_without_a_warden_leaves_its_child_to_the_supervisor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

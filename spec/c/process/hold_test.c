/* A lock that a tree holds is free only when nothing of the tree is left, whoever of its processes
 * is killed, and though the child has closed it. Not so when supervisor, keeper and warden die at
 * once: nobody is left then who could wait. */
#include "stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { SUPERVISOR = 1, RUNTIME = 2, KEEPER = 4, WARDEN = 8, ALL = 16 };

static void start_holding(const char *mode, enum child_isolation isolation)
{
    (void)snprintf(stage.board->lock, sizeof(stage.board->lock), "%s/lock", stage.folder);
    stage.board->mode = mode;
    stage.board->spec.isolation = isolation;
    stage_start();
}

static bool lock_free(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(stage.board->lock, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    assert_int_equal(close(fd), 0);
    return lock.l_type == F_UNLCK;
}

/* Without a pause: who takes the lock now must find nobody. */
static void assert_free_when_gone(void)
{
    int64_t until_ns = clock_boottime_ns() + 30 * NS_PER_S; /* far more than it takes */
    while (!lock_free()) {
        (void)stage_gone(); /* who ticks is not held up */
        assert_true(clock_boottime_ns() < until_ns);
    }
    assert_true(stage_gone());
    assert_int_equal(unlink(stage.board->lock), 0);
}

static void what_the_child_has_kept_is_held_by_its_daemons_too(void **state)
{
    (void)state;
    start_holding("daemons", CHILD_ISOLATION_TREE);
    stage_until_ticking(3);
    assert_false(lock_free());
    stage_kill(stage.supervisor, SIGKILL);
    assert_free_when_gone();
}

static void kill_at_once(int victims)
{
    const pid_t pids[] = {stage.supervisor, stage_pid("crown-runtime"), stage_pid("crown-keeper"),
                          stage_pid("crown-warden")};
    for (int i = 0; i < 4; i++)
        if ((victims & 1 << i) != 0)
            (void)kill(pids[i], SIGKILL); /* who has lost its parent may be dead already */
}

static void kill_each_set(void **state, enum child_isolation isolation)
{
    const int guards = SUPERVISOR | KEEPER | WARDEN;
    bool first = true;
    for (int victims = 1; victims < ALL; victims++) {
        if ((victims & guards) == guards)
            continue;
        if (!first)
            assert_int_equal(stage_close(state) | stage_open(state), 0);
        first = false;
        start_holding("crowd", isolation);
        stage_until_ticking(1); /* the crowd is there */
        kill_at_once(victims);
        if ((victims & (SUPERVISOR | RUNTIME)) == 0)
            stage_kill(stage_pid("crown-runtime"), SIGKILL); /* it would hold the lock itself */
        assert_free_when_gone();
    }
}

static void whoever_is_killed_it_is_held_until_the_tree_is_gone(void **state)
{
    kill_each_set(state, CHILD_ISOLATION_TREE);
}

static void whoever_is_killed_it_is_held_until_the_namespace_is_gone(void **state)
{
    kill_each_set(state, CHILD_ISOLATION_PIDNS);
}

static pid_t victim;

static bool is_dead(void)
{
    char state = stage_state(victim);
    return state == '\0' || state == 'Z';
}

static void kill_for_sure(pid_t pid)
{
    stage_kill(pid, SIGKILL);
    victim = pid;
    stage_until(is_dead); /* so its descriptors are closed */
}

/* Nobody else has it then, and it is too late to take it up. */
static void a_stopped_supervisor_holds_it_when_keeper_and_warden_are_dead(void **state)
{
    (void)state;
    start_holding("crowd", CHILD_ISOLATION_TREE);
    stage_until_ticking(1);
    pid_t runtime = stage_pid("crown-runtime"), keeper = stage_pid("crown-keeper");
    pid_t warden = stage_pid("crown-warden");
    stage_kill(stage.supervisor, SIGSTOP);
    stage_hold(warden); /* it is not to end the tree */
    kill_for_sure(keeper);
    kill_for_sure(warden);
    kill_for_sure(runtime);
    assert_false(stage_gone());
    assert_false(lock_free());
    stage_kill(stage.supervisor, SIGCONT);
    assert_free_when_gone();
}

#define INSTANTS 15
#define BETWEEN_NS (40 * NS_PER_US)

/* It has begun to, since its supervisor is dead, and has not come far. */
static void kill_keepers_at_work(void **state, enum child_isolation isolation)
{
    for (int i = 0; i < INSTANTS; i++) {
        if (i > 0)
            assert_int_equal(stage_close(state) | stage_open(state), 0);
        start_holding("crowd", isolation);
        stage_until_ticking(1);
        pid_t keeper = stage_pid("crown-keeper");
        stage_kill(stage_pid("crown-runtime"), SIGKILL);
        stage_kill(stage.supervisor, SIGKILL);
        int64_t at_ns = clock_boottime_ns() + i * BETWEEN_NS;
        while (clock_boottime_ns() < at_ns)
            continue;
        (void)kill(keeper, SIGKILL); /* it may be done */
        assert_free_when_gone();
    }
}

static void a_keeper_that_dies_as_it_ends_a_tree_leaves_the_rest_to_the_warden(void **state)
{
    kill_keepers_at_work(state, CHILD_ISOLATION_TREE);
}

static void a_keeper_that_dies_as_it_ends_a_namespace_leaves_the_rest_to_the_warden(void **state)
{
    kill_keepers_at_work(state, CHILD_ISOLATION_PIDNS);
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(what_the_child_has_kept_is_held_by_its_daemons_too),
        STAGE_TEST_READY(what_the_child_has_kept_is_held_by_its_daemons_too),
        STAGE_TEST(whoever_is_killed_it_is_held_until_the_tree_is_gone),
        STAGE_TEST_READY(whoever_is_killed_it_is_held_until_the_tree_is_gone),
        STAGE_TEST(whoever_is_killed_it_is_held_until_the_namespace_is_gone),
        STAGE_TEST_READY(whoever_is_killed_it_is_held_until_the_namespace_is_gone),
        STAGE_TEST(a_stopped_supervisor_holds_it_when_keeper_and_warden_are_dead),
        STAGE_TEST_READY(a_stopped_supervisor_holds_it_when_keeper_and_warden_are_dead),
        STAGE_TEST(a_keeper_that_dies_as_it_ends_a_tree_leaves_the_rest_to_the_warden),
        STAGE_TEST_READY(a_keeper_that_dies_as_it_ends_a_tree_leaves_the_rest_to_the_warden),
        STAGE_TEST(a_keeper_that_dies_as_it_ends_a_namespace_leaves_the_rest_to_the_warden),
        STAGE_TEST_READY(a_keeper_that_dies_as_it_ends_a_namespace_leaves_the_rest_to_the_warden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What tree_test.c asks of a child's tree, of one in a PID namespace of the child's. */
#include "process/pidns.h"

#include "daemons.h"

#include <string.h>
#include <sys/wait.h>

static void start_namespaced(void)
{
    stage.board->spec.isolation = CHILD_ISOLATION_PIDNS;
    daemons_start_with_deadline();
}

static void a_namespaced_tree_ends_before_its_deadline_with_nobody_helping(void **state)
{
    (void)state;
    start_namespaced();
    daemons_leave_alone();
    daemons_assert_gone_in_time();
}

static void a_namespaced_tree_goes_with_a_stopped_keeper_and_warden_and_supervisor(void **state)
{
    (void)state;
    start_namespaced();
    daemons_leave_alone();
    stage_kill(stage_pid("crown-warden"), SIGSTOP);
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_assert_gone_in_time();
}

/* Its own timer is all that ends it there: the warden's would do nothing in a namespace. */
static void a_keeper_that_is_held_when_the_warden_begins_keeps_the_deadline(void **state)
{
    (void)state;
    stage.board->mode = "daemons";
    stage.board->spec.isolation = CHILD_ISOLATION_PIDNS;
    stage_set_deadlines(TIME_NEVER, 4 * SOON, 5 * SOON);
    (void)stage_start_and_hold_keeper();
    stage_until_ticking(DAEMONS);
    daemons_assert_gone_in_time();
}

static void a_namespaced_tree_goes_with_its_keeper(void **state)
{
    (void)state;
    start_namespaced();
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    (void)stage_until_message(WIRE_KEEPER_FAILED);
    stage_until_gone();
}

static void a_namespaced_tree_goes_with_its_warden(void **state)
{
    (void)state;
    start_namespaced();
    stage_kill(stage_pid("crown-warden"), SIGKILL);
    (void)stage_until_message(WIRE_GONE);
    stage_until_gone();
}

static void a_namespaced_tree_goes_with_its_supervisor(void **state)
{
    (void)state;
    start_namespaced();
    stage_kill(stage.supervisor, SIGKILL);
    stage_until_gone();
    stage_until_empty();
}

/* Not every kernel lets users make namespaces; then it must say so. */
static bool started_or_refused(void)
{
    return stage.count[TICK_CHILD] > 0 || stage_message(WIRE_START_FAILED) != NULL;
}

static void a_namespaced_tree_without_privileges_keeps_its_deadline_or_is_refused(void **state)
{
    (void)state;
    stage.board->spec.isolation = CHILD_ISOLATION_PIDNS;
    stage.board->unprivileged = true;
    stage.board->mode = "daemons";
    stage_set_deadlines(TIME_NEVER, 4 * SOON, 5 * SOON);
    stage_start();
    stage_until(started_or_refused);
    const struct wire_message *refused = stage_message(WIRE_START_FAILED);
    if (refused != NULL) {
        assert_non_null(strstr(refused->text, "isolation 'pidns'"));
        return;
    }
    stage_until_ticking(DAEMONS);
    stage_kill(stage_pid("crown-keeper"), SIGSTOP);
    daemons_assert_gone_in_time();
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_namespaced_tree_ends_before_its_deadline_with_nobody_helping),
        STAGE_TEST_READY(a_namespaced_tree_ends_before_its_deadline_with_nobody_helping),
        STAGE_TEST(a_namespaced_tree_goes_with_a_stopped_keeper_and_warden_and_supervisor),
        STAGE_TEST_READY(a_namespaced_tree_goes_with_a_stopped_keeper_and_warden_and_supervisor),
        STAGE_TEST(a_keeper_that_is_held_when_the_warden_begins_keeps_the_deadline),
        STAGE_TEST(a_namespaced_tree_goes_with_its_keeper),
        STAGE_TEST_READY(a_namespaced_tree_goes_with_its_keeper),
        STAGE_TEST(a_namespaced_tree_goes_with_its_warden),
        STAGE_TEST_READY(a_namespaced_tree_goes_with_its_warden),
        STAGE_TEST(a_namespaced_tree_goes_with_its_supervisor),
        STAGE_TEST_READY(a_namespaced_tree_goes_with_its_supervisor),
        STAGE_TEST(a_namespaced_tree_without_privileges_keeps_its_deadline_or_is_refused),
        STAGE_TEST_READY(a_namespaced_tree_without_privileges_keeps_its_deadline_or_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A signal to the whole process group, or to all processes of a service, as timeout(1), a
 * terminal's hang-up and a service manager send it: what is killed by it is the child's tree at
 * most, in its order. */
#include "process/signals.h"

#include "stage.h"

#include <sys/wait.h>

#include "base/clock.h"

static void start_in_a_group(void)
{
    stage.board->mode = "stubborn";
    stage.board->arm = stage.board->stay = stage.board->own_group = true;
    stage.board->spec.terminal = true; /* as for `run`: keeper and warden stay in the group */
    stage_start();
    stage_until_ticking(0);
}

static void assert_all_live(void)
{
    pid_t keeper = stage_pid("crown-keeper");
    pid_t warden = stage_pid("crown-warden");
    for (int i = 0; i < 20; i++)
        stage_until_ticking(0);
    assert_int_equal(stage.last_signal, 0);
    assert_null(stage_message(WIRE_KILLED));
    assert_null(stage_message(WIRE_GONE));
    assert_int_equal(stage.board->runs, 1);
    assert_int_equal(stage_pid("crown-keeper"), keeper);
    assert_int_equal(stage_pid("crown-warden"), warden);
}

static bool child_was_asked(void)
{
    return stage.last_signal == SIGTERM;
}

static void signal_the_group(int signal)
{
    start_in_a_group();
    stage_kill(-stage.supervisor, signal);
    if (signal != SIGHUP)
        assert_int_equal(stage_until_message(WIRE_STOP)->signal, signal);
    assert_all_live();
    /* The runtime steps down, and the child hears of it as it should. */
    const struct wire_message stop = {.kill_at_ns = clock_boottime_ns() + 3600 * NS_PER_S};
    stage_order(ORDER_STOP, &stop);
    stage_until(child_was_asked);
    stage_kill((pid_t)stage_until_message(WIRE_STARTED)->pid, SIGKILL);
    (void)stage_until_message(WIRE_GONE);
    stage_until_gone();
    assert_null(stage_message(WIRE_KEEPER_FAILED));
}

static void a_group_s_term_goes_the_way_of_a_stop(void **state)
{
    (void)state;
    signal_the_group(SIGTERM);
}

static void a_group_s_int_goes_the_way_of_a_stop(void **state)
{
    (void)state;
    signal_the_group(SIGINT);
}

static void a_group_s_hup_ends_nothing(void **state)
{
    (void)state;
    signal_the_group(SIGHUP);
}

/* It is what the kernel says of a dead parent to keepers and wardens: these parents live. */
static void a_group_s_cont_ends_nothing(void **state)
{
    (void)state;
    start_in_a_group();
    stage_kill(-stage.supervisor, SIGNAL_END);
    assert_all_live();
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_group_s_term_goes_the_way_of_a_stop),
        STAGE_TEST_READY(a_group_s_term_goes_the_way_of_a_stop),
        STAGE_TEST(a_group_s_int_goes_the_way_of_a_stop),
        STAGE_TEST_READY(a_group_s_int_goes_the_way_of_a_stop),
        STAGE_TEST(a_group_s_hup_ends_nothing),
        STAGE_TEST_READY(a_group_s_hup_ends_nothing),
        STAGE_TEST(a_group_s_cont_ends_nothing),
        STAGE_TEST_READY(a_group_s_cont_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

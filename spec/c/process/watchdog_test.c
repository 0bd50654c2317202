/* Which runtime is dead: one that makes no progress, not one that gets no processor. */
#include "process/watchdog.h"

#include "stage.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/signals.h"

/* More than a busy host keeps a process from a moment's work, less than anybody's patience. */
#define SILENCE (800 * NS_PER_MS)
#define LONG (3 * NS_PER_S)
#define SHORT (STAGE_WORK_NS * 5 / 2)
#define HOGS 4

static void a_runtime_that_spins_is_replaced_and_the_next_one_hears_why(void **state)
{
    (void)state;
    stage.board->answers = true;
    stage_start_armed(SILENCE);
    stage_order(ORDER_SPIN, NULL);
    stage_until_runs(2);
    assert_string_equal(stage_until_message(WIRE_HELD)->text, "on the stage");
}

/* In processor time, so that a busy host changes nothing: the supervisor, which works in real time,
 * looks when it is to. */
static void a_runtime_that_spins_is_killed_when_its_time_is_up(void **state)
{
    (void)state;
    stage.board->answers = true;
    stage_start_armed(LONG);
    stage_order(ORDER_SPIN, NULL);
    stage_until_runs(2);
    assert_true(stage.board->spun_ns > LONG * 9 / 10);
    assert_true(stage.board->spun_ns < LONG * 11 / 10);
}

static void a_runtime_that_does_not_answer_is_replaced(void **state)
{
    (void)state;
    stage_start_armed(SILENCE);
    stage_order(ORDER_SPIN, NULL);
    stage_until_runs(2);
    assert_string_equal(stage_until_message(WIRE_HELD)->text, "no answer");
}

static void a_stopped_runtime_is_replaced_and_named(void **state)
{
    (void)state;
    stage.board->answers = true;
    stage_start_armed(SILENCE);
    stage_kill(stage_pid("crown-runtime"), SIGSTOP);
    stage_until_runs(2);
    assert_string_equal(stage_until_message(WIRE_HELD)->text, "stopped by a signal");
}

static void a_runtime_that_dies_otherwise_was_held_by_nothing(void **state)
{
    (void)state;
    stage_start_armed(SILENCE);
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_runs(2);
    assert_null(stage_message(WIRE_HELD));
}

/* With all others of one processor, so that the runtime gets a fifth of it. */
static void share_processor(pid_t pid)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
}

static void start_hogs(pid_t *hogs)
{
    for (int i = 0; i < HOGS; i++) {
        hogs[i] = fork();
        assert_true(hogs[i] >= 0);
        if (hogs[i] == 0)
            for (volatile unsigned spins = 0;; spins++)
                continue;
        share_processor(hogs[i]);
    }
}

static void a_runtime_that_gets_little_processor_time_is_not_silent(void **state)
{
    (void)state;
    pid_t hogs[HOGS];
    stage_start_armed(SHORT);
    share_processor(stage_pid("crown-runtime"));
    start_hogs(hogs);
    int64_t began_ns = clock_monotonic_ns();
    stage_order(ORDER_WORK, NULL); /* until it is done */
    int64_t took_ns = clock_monotonic_ns() - began_ns;
    for (int i = 0; i < HOGS; i++)
        stage_kill(hogs[i], SIGKILL);
    assert_true(took_ns > SHORT); /* it was silent for longer than is allowed */
    stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
}

static void a_runtime_that_beats_in_time_lives_however_slowly(void **state)
{
    (void)state;
    stage.board->slow = true;
    stage_start_armed(STAGE_SLOW_NS * 4 / 3);
    int64_t until_ns = clock_monotonic_ns() + 5 * STAGE_SLOW_NS;
    while (clock_monotonic_ns() < until_ns)
        stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
}

static void until_it_ticked(int ticks)
{
    for (int i = 0; i < ticks; i++)
        stage_until_ticking(0);
}

/* It was asked, has answered, and went on before it was killed. */
static void a_runtime_that_goes_on_at_the_last_moment_is_spared(void **state)
{
    (void)state;
    stage.board->answers = true;
    stage_start_armed(SILENCE);
    stage_order(ORDER_NAP, NULL);
    until_it_ticked(300); /* of 5 ms each, at least: it has been asked by now */
    assert_int_equal(stage.board->runs, 1);
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_runs(2);
    assert_null(stage_message(WIRE_HELD)); /* it died of something else */
}

/* Until something wakes it, which it answers for from then on. */
static void a_runtime_that_is_idle_is_not_silent(void **state)
{
    (void)state;
    stage.board->answers = true;
    stage_start_armed(SILENCE);
    stage_order(ORDER_IDLE, NULL);
    until_it_ticked(500); /* of 5 ms each, at least */
    assert_int_equal(stage.board->runs, 1);
    stage_kill(stage_pid("crown-runtime"), SIGNAL_ASK);
    until_it_ticked(100);
    assert_int_equal(stage.board->runs, 1);
    stage_order(ORDER_SPIN, NULL);
    stage_until_runs(2);
    assert_string_equal(stage_until_message(WIRE_HELD)->text, "on the stage");
}

static void nobody_is_believed_to_be_idle_for_ever(void **state)
{
    (void)state;
    struct watchdog watchdog;
    watchdog_start(&watchdog, getpid());
    watchdog_limit(&watchdog, SILENCE);
    int64_t now_ns = clock_monotonic_ns();
    watchdog_idle(&watchdog, now_ns + 2 * PULSE_IDLE_MOST_NS);
    assert_true(watchdog_next_ns(&watchdog) > now_ns + PULSE_IDLE_MOST_NS);
    assert_true(watchdog_next_ns(&watchdog) < now_ns + PULSE_IDLE_MOST_NS * 3 / 2);
}

/* Long before its end as well: what it answers has to come in time. */
static void a_silence_is_asked_about_an_eighth_before_its_end_at_most_a_moment(void **state)
{
    (void)state;
    struct watchdog watchdog;
    watchdog_start(&watchdog, getpid());
    watchdog_limit(&watchdog, 80 * NS_PER_MS);
    assert_int_equal(watchdog.pulse.mark_ns, 70 * NS_PER_MS);
    watchdog_limit(&watchdog, 80 * NS_PER_S);
    assert_int_equal(watchdog.pulse.mark_ns, 80 * NS_PER_S - 100 * NS_PER_MS);
}

static void an_idle_runtime_that_is_stopped_is_replaced(void **state)
{
    (void)state;
    int64_t began_ns = clock_monotonic_ns();
    stage_start_armed(SILENCE);
    stage_order(ORDER_IDLE, NULL);
    until_it_ticked(20);
    stage_kill(stage_pid("crown-runtime"), SIGSTOP);
    stage_until_runs(2);
    assert_string_equal(stage_until_message(WIRE_HELD)->text, "stopped by a signal");
    assert_true(clock_monotonic_ns() - began_ns < STAGE_IDLE_NS);
}

static void an_idle_runtime_that_goes_on_in_time_is_spared(void **state)
{
    (void)state;
    stage.board->answers = true;
    stage_start_armed(SILENCE);
    stage_order(ORDER_IDLE, NULL);
    pid_t runtime = stage_pid("crown-runtime");
    until_it_ticked(20);
    stage_kill(runtime, SIGSTOP);
    until_it_ticked(20);
    stage_kill(runtime, SIGCONT);
    until_it_ticked(500);
    assert_int_equal(stage.board->runs, 1);
}

static void what_was_said_unasked_is_not_passed_on(void **state)
{
    (void)state;
    stage_start_armed(SILENCE);
    stage_order(ORDER_SAY, NULL);
    until_it_ticked(5);
    stage_kill(stage_pid("crown-runtime"), SIGKILL);
    stage_until_runs(2);
    assert_null(stage_message(WIRE_HELD));
}

static void a_supervisor_that_was_held_up_blames_nobody(void **state)
{
    (void)state;
    stage_start_armed(SILENCE);
    pid_t runtime = stage_pid("crown-runtime");
    stage_kill(stage.supervisor, SIGSTOP);
    stage_kill(runtime, SIGSTOP);
    const struct timespec pause = {1, 0}; /* longer than the silence that is allowed */
    (void)nanosleep(&pause, NULL);
    stage_kill(stage.supervisor, SIGCONT);
    for (int i = 0; i < 5; i++)
        stage_until_ticking(0); /* the supervisor has looked */
    stage_kill(runtime, SIGCONT);
    for (int i = 0; i < 50; i++)
        stage_until_ticking(0);
    assert_int_equal(stage.board->runs, 1);
}

static void a_runtime_that_ends_itself_too_slowly_is_ended(void **state)
{
    (void)state;
    stage.board->stay = true;
    stage.board->end_silence_ns = SILENCE;
    stage_start();
    stage_until_ticking(0);
    stage_order(ORDER_HANG, NULL);
    stage_kill(stage.supervisor, SIGTERM);
    stage_wait_supervisor();
    stage_until_gone();
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_runtime_that_spins_is_replaced_and_the_next_one_hears_why),
        STAGE_TEST(a_runtime_that_spins_is_killed_when_its_time_is_up),
        STAGE_TEST(a_runtime_that_does_not_answer_is_replaced),
        STAGE_TEST(a_stopped_runtime_is_replaced_and_named),
        STAGE_TEST(a_runtime_that_dies_otherwise_was_held_by_nothing),
        STAGE_TEST(a_runtime_that_gets_little_processor_time_is_not_silent),
        STAGE_TEST(a_runtime_that_beats_in_time_lives_however_slowly),
        STAGE_TEST(a_runtime_that_goes_on_at_the_last_moment_is_spared),
        STAGE_TEST(a_runtime_that_is_idle_is_not_silent),
        STAGE_TEST(nobody_is_believed_to_be_idle_for_ever),
        STAGE_TEST(a_silence_is_asked_about_an_eighth_before_its_end_at_most_a_moment),
        STAGE_TEST(an_idle_runtime_that_is_stopped_is_replaced),
        STAGE_TEST(an_idle_runtime_that_goes_on_in_time_is_spared),
        STAGE_TEST(what_was_said_unasked_is_not_passed_on),
        STAGE_TEST(a_supervisor_that_was_held_up_blames_nobody),
        STAGE_TEST(a_runtime_that_ends_itself_too_slowly_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

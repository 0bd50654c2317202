/* How long a process has been silent, by instants that the test sets. */
#include "process/pulse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/process_stat.h"

#define LIMIT (80 * NS_PER_S)
#define SOON (5 * NS_PER_S) /* what a busy machine takes between two lines here, at most */

static struct pulse pulse;
static pid_t pid;

static void wait_for_state(char wanted)
{
    while (process_stat(pid).state != wanted)
        (void)usleep(1000);
}

/* It sleeps, or works, until it is killed. */
static void begin(int works)
{
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            if (!works)
                (void)pause();
    }
    assert_true(pid > 0);
    if (!works)
        wait_for_state('S');
    pulse_start(&pulse, pid);
    pulse_limit(&pulse, LIMIT);
    pulse_mark(&pulse, LIMIT);
}

static int end(void **state)
{
    (void)state;
    (void)kill(pid, SIGKILL);
    return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

/* As if it had been looked at so long ago, and were to be looked at again so much later. */
static int64_t looked(int64_t ago_ns, int64_t pause_ns)
{
    const int64_t now_ns = clock_monotonic_ns();
    pulse.looked_ns = now_ns - ago_ns;
    pulse.next_ns = pulse.looked_ns + pause_ns;
    return now_ns;
}

static bool about(int64_t is_ns, int64_t wanted_ns)
{
    return is_ns >= wanted_ns && is_ns < wanted_ns + SOON;
}

static void it_is_looked_at_when_half_of_the_limit_is_over(void **state)
{
    (void)state;
    begin(0);
    assert_true(about(pulse.next_ns - clock_monotonic_ns() + SOON, LIMIT / 2));
    assert_false(pulse_look(&pulse)); /* too early: nothing is counted */
    assert_int_equal(pulse.silent_ns, 0);
    pulse_limit(&pulse, 0);
    assert_true(pulse.next_ns == TIME_NEVER);
}

static void silence_is_counted_from_look_to_look(void **state)
{
    (void)state;
    begin(0);
    (void)looked(LIMIT / 2, LIMIT / 2);
    assert_false(pulse_look(&pulse));
    assert_true(about(pulse.silent_ns, LIMIT / 2));
    assert_true(about(clock_monotonic_ns() - pulse.looked_ns, 0));
    assert_int_equal(pulse.next_ns - pulse.looked_ns, LIMIT / 8);
    (void)looked(LIMIT / 8, LIMIT / 8);
    assert_false(pulse_look(&pulse));
    assert_true(about(pulse.silent_ns, LIMIT * 5 / 8));
    const int64_t beaten_ns = clock_monotonic_ns();
    pulse_beat(&pulse);
    assert_int_equal(pulse.silent_ns, 0);
    assert_true(pulse.last_beat_ns >= beaten_ns);
    assert_int_equal(pulse.next_ns - pulse.looked_ns, LIMIT / 2);
}

static void a_silence_as_long_as_the_mark_is_told(void **state)
{
    (void)state;
    begin(0);
    pulse.silent_ns = LIMIT - LIMIT / 8 - SOON;
    (void)looked(LIMIT / 8, LIMIT / 8);
    (void)pulse_look(&pulse);
    assert_true(pulse.silent_ns >= LIMIT - SOON);
    pulse_mark(&pulse, LIMIT);
    pulse.silent_ns = LIMIT;
    (void)looked(NS_PER_MS, NS_PER_MS);
    assert_true(pulse_look(&pulse));
    pulse_beat(&pulse);
    pulse_mark(&pulse, LIMIT / 2 - NS_PER_MS);
    (void)looked(LIMIT / 2, LIMIT / 2);
    assert_true(pulse_look(&pulse));
}

/* As the mark comes near, looks do; but they are never closer than a hundredth of the limit. */
static void looks_come_closer_before_the_mark(void **state)
{
    (void)state;
    begin(0);
    pulse.silent_ns = LIMIT * 3 / 4;
    (void)looked(LIMIT / 8 + LIMIT / 32, LIMIT / 8 + LIMIT / 32);
    (void)pulse_look(&pulse);
    const int64_t left_ns = LIMIT - pulse.silent_ns;
    assert_int_equal(pulse.next_ns - pulse.looked_ns,
                     left_ns > LIMIT / 100 ? left_ns : LIMIT / 100);
    pulse.silent_ns = LIMIT;
    (void)looked(NS_PER_MS, NS_PER_MS);
    (void)pulse_look(&pulse);
    assert_int_equal(pulse.next_ns - pulse.looked_ns, LIMIT / 100);
}

/* Who looks too late was held up itself: an eighth of the limit more is all that counts. */
static void a_look_that_comes_late_counts_for_little_more(void **state)
{
    (void)state;
    begin(0);
    (void)looked(100 * LIMIT, LIMIT / 2);
    assert_false(pulse_look(&pulse));
    assert_int_equal(pulse.silent_ns, LIMIT / 2 + LIMIT / 8);
}

/* A busy machine may give it no processor: only the time that it had counts. */
static void one_that_works_is_silent_for_as_long_as_it_has_worked(void **state)
{
    (void)state;
    begin(1);
    const int64_t worked_ns = pulse.processor_ns;
    do
        (void)usleep(1000);
    while (process_stat(pid).state != 'R');
    (void)looked(LIMIT / 2, LIMIT / 2);
    (void)pulse_look(&pulse);
    assert_true(pulse.processor_ns >= worked_ns);
    assert_true(pulse.silent_ns <= LIMIT / 2 + SOON);
    if (pulse.running)
        assert_true(pulse.silent_ns <= pulse.processor_ns - worked_ns);
}

static void one_that_is_idle_is_not_silent_until_then(void **state)
{
    (void)state;
    begin(0);
    const int64_t idle_ns = clock_monotonic_ns() + 20 * NS_PER_S;
    pulse_idle(&pulse, idle_ns);
    assert_int_equal(pulse.looked_ns, idle_ns);
    assert_int_equal(pulse.next_ns, idle_ns + LIMIT / 2);
    pulse.next_ns = clock_monotonic_ns();
    assert_false(pulse_look(&pulse));
    assert_int_equal(pulse.silent_ns, 0);
    assert_int_equal(pulse.next_ns, idle_ns + LIMIT / 2);
    pulse_idle(&pulse, TIME_NEVER);
    assert_true(about(pulse.idle_until_ns - clock_monotonic_ns() + SOON, PULSE_IDLE_MOST_NS));
    pulse_beat(&pulse);
    assert_int_equal(pulse.idle_until_ns, 0);
}

static void one_that_is_stopped_while_it_is_idle_is_silent(void **state)
{
    (void)state;
    begin(0);
    const int64_t idle_ns = clock_monotonic_ns() + 20 * NS_PER_S;
    pulse_idle(&pulse, idle_ns);
    pulse_heed(&pulse); /* nothing has happened to it */
    assert_int_equal(pulse.looked_ns, idle_ns);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    wait_for_state('T');
    pulse_heed(&pulse);
    assert_true(about(clock_monotonic_ns() - pulse.looked_ns, 0));
    assert_int_equal(pulse.next_ns - pulse.looked_ns, LIMIT / 2);
    const int64_t heeded_ns = pulse.looked_ns;
    pulse_heed(&pulse); /* once: it is looked at anyway from then on */
    assert_int_equal(pulse.looked_ns, heeded_ns);
    (void)looked(LIMIT / 2, LIMIT / 2);
    (void)pulse_look(&pulse);
    assert_true(about(pulse.silent_ns, LIMIT / 2));
}

static void one_that_is_not_idle_is_heeded_by_looks(void **state)
{
    (void)state;
    begin(0);
    const int64_t looked_ns = pulse.looked_ns;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    wait_for_state('T');
    pulse_heed(&pulse);
    assert_int_equal(pulse.looked_ns, looked_ns);
}

/* At the instant itself. */
static void a_silence_of_the_mark_itself_is_told(void **state)
{
    (void)state;
    begin(0);
    pulse_limit(&pulse, 0);
    pulse.silent_ns = 0;
    pulse.next_ns = pulse.looked_ns = 0; /* nothing passes: no more than an eighth of no limit */
    pulse_mark(&pulse, 0);
    assert_true(pulse_look(&pulse));
    pulse_mark(&pulse, 1);
    pulse.next_ns = pulse.looked_ns = 0;
    assert_false(pulse_look(&pulse));
}

static void a_process_that_has_begun_is_not_silent_yet(void **state)
{
    (void)state;
    begin(0);
    const int64_t before_ns = clock_monotonic_ns();
    pulse_start(&pulse, pid);
    assert_int_equal(pulse.pid, pid);
    assert_true(pulse.started_ns >= before_ns);
    assert_true(pulse.last_beat_ns >= pulse.started_ns);
    assert_true(pulse.looked_ns >= pulse.started_ns);
}

static void it_has_lasted_until_its_last_beat(void **state)
{
    (void)state;
    begin(0);
    pulse.started_ns -= 5 * NS_PER_S;
    pulse.last_beat_ns = pulse.started_ns + 3 * NS_PER_S;
    assert_int_equal(pulse_lasted_ns(&pulse), 3 * NS_PER_S);
}

#define PULSE_TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PULSE_TEST(it_is_looked_at_when_half_of_the_limit_is_over),
        PULSE_TEST(silence_is_counted_from_look_to_look),
        PULSE_TEST(a_silence_as_long_as_the_mark_is_told),
        PULSE_TEST(looks_come_closer_before_the_mark),
        PULSE_TEST(a_look_that_comes_late_counts_for_little_more),
        PULSE_TEST(one_that_works_is_silent_for_as_long_as_it_has_worked),
        PULSE_TEST(one_that_is_idle_is_not_silent_until_then),
        PULSE_TEST(one_that_is_stopped_while_it_is_idle_is_silent),
        PULSE_TEST(one_that_is_not_idle_is_heeded_by_looks),
        PULSE_TEST(a_silence_of_the_mark_itself_is_told),
        PULSE_TEST(a_process_that_has_begun_is_not_silent_yet),
        PULSE_TEST(it_has_lasted_until_its_last_beat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

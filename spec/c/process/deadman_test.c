#include "process/deadman.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "patience.h"

/* Forks a process that does `act` with a timer that ends it soon; where that does not, it ends
 * itself in the end, with another signal. @return its wait status. */
static int run(void (*act)(const struct deadman *deadman))
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm((unsigned)(patience_ns() / NS_PER_S));
        struct deadman deadman;
        if (deadman_open(&deadman, NULL) < 0)
            _exit(99);
        act(&deadman);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void assert_killed(int status)
{
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void arm_soon(const struct deadman *deadman)
{
    deadman_set(deadman, clock_boottime_ns() + 20 * NS_PER_MS);
}

static void stop_itself(const struct deadman *deadman)
{
    arm_soon(deadman);
    (void)raise(SIGSTOP);
}

static void spin_with_all_signals_blocked(const struct deadman *deadman)
{
    sigset_t set;
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    arm_soon(deadman);
    for (volatile unsigned spins = 0;; spins++)
        continue;
}

static void arm_in_the_past(const struct deadman *deadman)
{
    deadman_set(deadman, 0);
    for (;;)
        (void)pause();
}

static void disarm(const struct deadman *deadman)
{
    int64_t at_ns = clock_boottime_ns() + 20 * NS_PER_MS;
    deadman_set(deadman, at_ns);
    deadman_set(deadman, TIME_NEVER);
    while (clock_boottime_ns() < at_ns + 20 * NS_PER_MS)
        continue;
}

static void move(const struct deadman *deadman)
{
    int64_t at_ns = clock_boottime_ns() + 20 * NS_PER_MS;
    deadman_set(deadman, at_ns);
    deadman_set(deadman, at_ns + 600 * NS_PER_S);
    while (clock_boottime_ns() < at_ns + 20 * NS_PER_MS)
        continue;
}

static void close_it(const struct deadman *deadman)
{
    int64_t at_ns = clock_boottime_ns() + 20 * NS_PER_MS;
    deadman_set(deadman, at_ns);
    deadman_close(deadman);
    while (clock_boottime_ns() < at_ns + 20 * NS_PER_MS)
        continue;
}

static void a_stopped_process_is_ended(void **state)
{
    (void)state;
    assert_killed(run(stop_itself));
}

static void a_spinning_process_that_blocks_all_signals_is_ended(void **state)
{
    (void)state;
    assert_killed(run(spin_with_all_signals_blocked));
}

static void an_instant_in_the_past_ends_the_process_now(void **state)
{
    (void)state;
    assert_killed(run(arm_in_the_past));
}

static void a_disarmed_moved_or_closed_timer_ends_nothing(void **state)
{
    (void)state;
    assert_int_equal(run(disarm), 0);
    assert_int_equal(run(move), 0);
    assert_int_equal(run(close_it), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_process_is_ended),
        cmocka_unit_test(a_spinning_process_that_blocks_all_signals_is_ended),
        cmocka_unit_test(an_instant_in_the_past_ends_the_process_now),
        cmocka_unit_test(a_disarmed_moved_or_closed_timer_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

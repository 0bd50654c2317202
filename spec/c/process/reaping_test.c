/* Dead children: those that a signal names, and those that it does not. */
#include "process/reaping.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define MANY 30000u

/* @return a child that has died, and is not reaped. */
static pid_t dead_child(int code)
{
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0)
        _exit(code);
    assert_true(pid > 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    return pid;
}

static int reap_all(void **state)
{
    (void)state;
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return 0;
}

static void who_is_named_is_found_and_so_are_those_who_are_not(void **state)
{
    (void)state;
    struct reaping reaping = {.due = false};
    int status = 0;
    pid_t first = dead_child(1), second = dead_child(2);
    assert_int_equal(reaping_next(&reaping, 2, &status), 0); /* nobody has said that one died */
    assert_int_equal(reaping_at_ns(&reaping), TIME_NEVER);
    assert_int_equal(reaping_heed(&reaping, second, &status), second);
    assert_int_equal(WEXITSTATUS(status), 2);
    assert_int_equal(reaping_next(&reaping, 2, &status), first);
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_int_equal(reaping_next(&reaping, 2, &status), 0);
    assert_int_equal(reaping_at_ns(&reaping), TIME_NEVER);
}

static void among_few_they_are_looked_for_at_once(void **state)
{
    (void)state;
    struct reaping reaping = {.due = false};
    int status;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(reaping_heed(&reaping, dead_child(0), &status) > 0, true);
        assert_int_equal(reaping_next(&reaping, 999, &status), 0);
    }
    pid_t last = dead_child(0);
    assert_int_equal(reaping_heed(&reaping, getpid(), &status), 0); /* none of its children */
    assert_int_equal(reaping_next(&reaping, 999, &status), last);
}

static void among_many_they_are_looked_for_after_a_pause(void **state)
{
    (void)state;
    struct reaping reaping = {.due = false};
    int status;
    int64_t begun_ns = clock_monotonic_ns();
    (void)reaping_heed(&reaping, dead_child(0), &status);
    assert_int_equal(reaping_next(&reaping, MANY, &status), 0);
    pid_t named = dead_child(0), other = dead_child(0), found = 0;
    assert_int_equal(reaping_heed(&reaping, named, &status), named); /* no pause for it */
    assert_true(reaping_at_ns(&reaping) >= begun_ns + MANY / 1000 * NS_PER_MS);
    while (found == 0)
        found = reaping_next(&reaping, MANY, &status);
    assert_int_equal(found, other);
    assert_true(clock_monotonic_ns() >= begun_ns + MANY / 1000 * NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(who_is_named_is_found_and_so_are_those_who_are_not, reap_all),
        cmocka_unit_test_teardown(among_few_they_are_looked_for_at_once, reap_all),
        cmocka_unit_test_teardown(among_many_they_are_looked_for_after_a_pause, reap_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

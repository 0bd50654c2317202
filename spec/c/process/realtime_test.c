/* Real-time priority, and where it is left: the calls of the kernel are seen as a debugger does. */
#include "process/realtime.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "traced.h"

#define CODE 7
#define SPIN_NS NS_PER_S
#define MANY 100

static int policy_of(pid_t pid)
{
    return sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK;
}

static void begin(void)
{
    traced_begin();
    if (!realtime_enter())
        _exit(TRACED_CANNOT);
}

static void reap_one(void)
{
    int status = 0;
    begin();
    pid_t child = fork();
    if (child == 0)
        _exit(CODE);
    if (realtime_wait(child, &status, 0) != child || WEXITSTATUS(status) != CODE)
        _exit(8);
    _exit(policy_of(0) == SCHED_FIFO ? 0 : 1);
}

static void reap_many(void)
{
    unsigned count = 0;
    int status;
    for (int i = 0; i < MANY; i++)
        if (fork() == 0)
            _exit(CODE);
    begin();
    while (realtime_reap(&status, __WALL, count) > 0)
        count++;
    _exit(count == MANY && errno == ECHILD && policy_of(0) == SCHED_FIFO ? 0 : 1);
}

/* A child may have real-time priority of its own, and spin. For a while only: where this fails it
 * has the processor for itself. */
static void spin(int line)
{
    const struct sched_param middle = {.sched_priority = 50};
    int64_t until_ns = clock_monotonic_ns() + SPIN_NS;
    if (sched_setscheduler(0, SCHED_FIFO, &middle) < 0 || write(line, "", 1) != 1)
        _exit(1);
    while (clock_monotonic_ns() < until_ns)
        continue;
    _exit(0);
}

static int wait_beside_one_that_spins(void)
{
    int line[2];
    char byte;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0 || pipe(line) < 0)
        return 2;
    if (!realtime_enter())
        return TRACED_CANNOT;
    pid_t child = fork();
    if (child == 0)
        spin(line[1]);
    (void)close(line[1]);
    if (read(line[0], &byte, 1) != 1)
        return TRACED_CANNOT; /* it may have a lower priority only */
    return waitpid(child, NULL, WNOHANG) == 0 ? 0 : 1;
}

static void whoever_has_a_lower_real_time_priority_and_spins_holds_nobody_up(void **state)
{
    int status;
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(wait_beside_one_that_spins());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == TRACED_CANNOT)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static unsigned ordinary, prior; /* how many were released at which priority */

static void heard(pid_t pid, uint64_t number)
{
    if (number == SYS_wait4 && policy_of(pid) == SCHED_OTHER)
        ordinary++;
    else if (number == SYS_wait4)
        prior++;
}

static void watch(void (*play)(void))
{
    ordinary = prior = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        play();
    int status = traced_run(pid, heard);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == TRACED_CANNOT)
        skip(); /* real-time priority is a privilege, and not everything can be watched */
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A reader of /proc that such a process interrupts on its own processor would never finish, and the
 * kernel waits for it as it releases a dead process. */
static void a_dead_process_is_released_at_ordinary_priority(void **state)
{
    (void)state;
    watch(reap_one);
    assert_int_equal(ordinary, 1);
    assert_int_equal(prior, 0);
}

/* Where others have the processor, more would die than are released. */
static void all_but_a_few_of_many_are_released_at_real_time_priority(void **state)
{
    (void)state;
    watch(reap_many);
    assert_true(ordinary > 0);
    assert_true(prior > MANY / 2);
}

static void whoever_has_no_child_is_told(void **state)
{
    int status;
    (void)state;
    assert_int_equal(realtime_wait(-1, &status, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static void whoever_has_none_that_is_dead_is_told(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            (void)pause();
    assert_int_equal(realtime_wait(-1, &status, WNOHANG | __WALL), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(realtime_wait(child, &status, 0), child);
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void one_that_is_stopped_is_told_of_where_it_is_asked_for(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        (void)raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(realtime_wait(child, &status, WUNTRACED | __WALL), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(realtime_wait(child, &status, WNOHANG | WUNTRACED | __WALL), 0);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(realtime_wait(child, &status, __WALL), child);
    assert_true(WIFEXITED(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_process_is_released_at_ordinary_priority),
        cmocka_unit_test(all_but_a_few_of_many_are_released_at_real_time_priority),
        cmocka_unit_test(whoever_has_a_lower_real_time_priority_and_spins_holds_nobody_up),
        cmocka_unit_test(whoever_has_no_child_is_told),
        cmocka_unit_test(whoever_has_none_that_is_dead_is_told),
        cmocka_unit_test(one_that_is_stopped_is_told_of_where_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

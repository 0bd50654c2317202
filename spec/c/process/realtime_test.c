/* Real-time priority, and where it is left: the calls of the kernel are seen as a debugger does. */
#include "process/realtime.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Behind <sys/ptrace.h>, whose names it defines once more. */
#include <linux/ptrace.h>

#include <cmocka.h>

#define CODE 7
#define CANNOT 77

static int policy_of(pid_t pid)
{
    return sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK;
}

static void be_watched(void) __attribute__((noreturn));
static void be_watched(void)
{
    int status = 0;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(errno == ENOSYS ? CANNOT : 9); /* as under qemu */
    if (raise(SIGSTOP) != 0)
        _exit(9);
    if (!realtime_enter())
        _exit(CANNOT);
    pid_t child = fork();
    if (child == 0)
        _exit(CODE);
    if (realtime_wait(child, &status, 0) != child || WEXITSTATUS(status) != CODE)
        _exit(8);
    _exit(policy_of(0) == SCHED_FIFO ? 0 : 1);
}

/* @return the signal that it has to be given. */
static int note_call(pid_t pid, int status, int *policy)
{
    struct ptrace_syscall_info call;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80))
        return WSTOPSIG(status);
    assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(call), &call) > 0);
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr == SYS_wait4)
        *policy = policy_of(pid);
    return 0;
}

/* A reader of /proc that such a process interrupts on its own processor would never finish, and the
 * kernel waits for it as it releases a dead process. */
static void a_dead_process_is_released_at_ordinary_priority(void **state)
{
    int status, policy = -1, signal = 0;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_watched();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSTOPPED(status))
        assert_int_equal(
            ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
    while (WIFSTOPPED(status)) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, signal), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSTOPPED(status))
            signal = note_call(pid, status, &policy);
    }
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT)
        skip(); /* real-time priority is a privilege, and not everything can be watched */
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(policy, SCHED_OTHER);
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
        cmocka_unit_test(whoever_has_no_child_is_told),
        cmocka_unit_test(whoever_has_none_that_is_dead_is_told),
        cmocka_unit_test(one_that_is_stopped_is_told_of_where_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "traced.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Behind <sys/ptrace.h>, whose names it defines once more. */
#include <linux/ptrace.h>

#include <cmocka.h>

#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)

void traced_begin(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(errno == ENOSYS ? TRACED_CANNOT : 9);
    if (raise(SIGSTOP) != 0)
        _exit(9);
}

/* @return the signal that it has to be given. */
static int hear(pid_t pid, int status, void (*heard)(pid_t pid, uint64_t number))
{
    struct ptrace_syscall_info call;
    if (status >> 16 == PTRACE_EVENT_STOP)
        return 0;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80))
        return WSTOPSIG(status);
    assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(call), &call) > 0);
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY)
        heard(pid, call.entry.nr);
    return 0;
}

static int go_on(pid_t pid, int status, void (*heard)(pid_t pid, uint64_t number))
{
    int signal = 0;
    while (WIFSTOPPED(status)) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, signal), 0);
        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        if (WIFSTOPPED(status))
            signal = hear(pid, status, heard);
    }
    return status;
}

int traced_run(pid_t pid, void (*heard)(pid_t pid, uint64_t number))
{
    int status;
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    if (WIFSTOPPED(status))
        assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, OPTIONS), 0);
    return go_on(pid, status, heard);
}

bool traced_seize(pid_t pid, void (*meanwhile)(void), void (*heard)(pid_t pid, uint64_t number))
{
    int status;
    if (ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) < 0)
        return false;
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    meanwhile();
    (void)go_on(pid, status, heard);
    return true;
}

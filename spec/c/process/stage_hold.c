/* Holds a process at a point of its life that it passes in no time, with a debugger's means. */
#include "stage_parts.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define FORKS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

static int event_of(int status)
{
    return WIFSTOPPED(status) ? status >> 16 : 0;
}

static bool is_fork(int status)
{
    int event = event_of(status);
    return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE;
}

static void go_on(pid_t pid, int status)
{
    /* A signal that stopped it on its way is passed on; a stop of the debugger's own is none. */
    int signal = event_of(status) != 0 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, signal), 0);
}

/* Until `pid` has forked: it is held there, and its child where it begins. @return the child. */
static pid_t hold_at_fork(pid_t pid)
{
    int status = 0;
    unsigned long child = 0;
    for (;;) {
        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        assert_true(WIFSTOPPED(status));
        if (is_fork(status))
            break;
        go_on(pid, status);
    }
    assert_int_equal(ptrace(PTRACE_GETEVENTMSG, pid, NULL, &child), 0);
    assert_int_equal(waitpid((pid_t)child, &status, __WALL), child);
    return (pid_t)child;
}

static pid_t held_keeper;

pid_t stage_start_and_hold_keeper(void)
{
    stage.board->later = true;
    stage_start();
    stage_until_runs(1);
    assert_int_equal(ptrace(PTRACE_SEIZE, stage.supervisor, NULL, FORKS), 0);
    stage.board->order = ORDER_START; /* not stage_order, which would reap what we wait for */
    held_keeper = hold_at_fork(stage.supervisor);
    assert_int_equal(ptrace(PTRACE_DETACH, stage.supervisor, NULL, 0), 0);
    assert_int_equal(ptrace(PTRACE_CONT, held_keeper, NULL, 0), 0);
    pid_t warden = hold_at_fork(held_keeper);
    assert_int_equal(ptrace(PTRACE_DETACH, warden, NULL, 0), 0);
    return warden;
}

void stage_let_keeper_go(void)
{
    assert_int_equal(ptrace(PTRACE_DETACH, held_keeper, NULL, 0), 0);
}

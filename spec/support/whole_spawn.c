#include "whole_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "process/fds.h"
#include "process/realtime.h"

#include <cmocka.h>

extern char **environ;

struct whole_spawn whole_spawn;

static struct {
    jmp_buf parent; /* where the child is started, and its parent goes on */
    bool by_default[NSIG];
    char *stack;
    int next; /* descriptor */
} world;

int whole_spawn_open(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.next = SPAWN_NULL;
    whole_spawn = (struct whole_spawn){
        .starts = true, .error = EIO, .terminal = true, .foreground = SPAWN_GROUP, .limit = 1024};
    notes_forget();
    return 0;
}

/* @return what a call returns */
static int done(const char *call)
{
    if (whole_spawn.refused == NULL || strcmp(call, whole_spawn.refused) != 0)
        return 0;
    errno = whole_spawn.error;
    return -1;
}

/* --- the process and its end */

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if ((flags & MAP_STACK) == 0)
        return __real_mmap(at, size, protection, flags, fd, offset);
    if (done("mmap") < 0)
        return MAP_FAILED;
    assert_int_equal(protection, PROT_READ | PROT_WRITE);
    whole_spawn.stack = size;
    world.stack = __real_mmap(at, size, protection, flags, fd, offset);
    return world.stack;
}

int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size)
{
    if (at == world.stack && size == whole_spawn.stack)
        notes_add("gives the stack back");
    errno = 0; /* any call may change it */
    return __real_munmap(at, size);
}

int __wrap_clone(int (*run)(void *), void *stack, int flags, void *argument);
int __wrap_clone(int (*run)(void *), void *stack, int flags, void *argument)
{
    assert_ptr_equal(stack, world.stack + whole_spawn.stack);
    assert_int_equal((uintptr_t)stack % 16, 0);
    assert_int_equal(flags, CLONE_VM | CLONE_VFORK | SIGCHLD);
    if (done("clone") < 0)
        return -1;
    if (setjmp(world.parent) == 0)
        (void)run(argument);
    return SPAWN_CHILD;
}

void __wrap__exit(int code) __attribute__((noreturn));
void __wrap__exit(int code)
{
    notes_add("ends with %d", code);
    longjmp(world.parent, 1);
}

static const char *signals_by_default(void)
{
    static char text[40];
    for (int signal = 1; signal < NSIG; signal++)
        if (!world.by_default[signal]) {
            (void)snprintf(text, sizeof(text), "not signal %d", signal);
            return text;
        }
    return "each signal";
}

int __wrap_execvp(const char *program, char *const *arguments);
int __wrap_execvp(const char *program, char *const *arguments)
{
    whole_spawn.around = environ;
    notes_add("executes %s %s, %s by default", program, arguments[1], signals_by_default());
    if (whole_spawn.starts)
        longjmp(world.parent, 1);
    errno = whole_spawn.error;
    return -1;
}

pid_t __wrap_realtime_wait(pid_t which, int *status, int options);
pid_t __wrap_realtime_wait(pid_t which, int *status, int options)
{
    notes_add("reaps %d%s", (int)which, status == NULL && options == 0 ? "" : ", or not");
    return which;
}

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return SPAWN_PARENT; /* asked before the child is there */
}

pid_t __wrap_getppid(void);
pid_t __wrap_getppid(void)
{
    return whole_spawn.parent_dies ? 1 : SPAWN_PARENT;
}

int __wrap_prctl(int option, unsigned long value);
int __wrap_prctl(int option, unsigned long value)
{
    assert_int_equal(option, PR_SET_PDEATHSIG);
    notes_add("dies by %lu with its parent", value);
    return done("prctl");
}

/* --- signals */

int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    assert_null(old);
    assert_in_range(signal, 1, NSIG - 1);
    const bool refused = signal >= __SIGRTMIN && signal < SIGRTMIN; /* glibc's own two */
    if (action->sa_handler == SIG_DFL && !refused)
        world.by_default[signal] = true;
    return refused ? -1 : 0;
}

long __wrap_syscall(long number, int signal, const unsigned long *action, void *old, size_t size);
long __wrap_syscall(long number, int signal, const unsigned long *action, void *old, size_t size)
{
    assert_int_equal(number, SYS_rt_sigaction);
    assert_in_range(signal, 1, NSIG - 1);
    assert_null(old);
    assert_int_equal(size, 8);
    if (action[0] == (unsigned long)SIG_DFL)
        world.by_default[signal] = true;
    return 0;
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    unsigned count = 0;
    (void)old;
    assert_non_null(set);
    for (int signal = 1; signal < NSIG; signal++)
        count += sigismember(set, signal) == 1;
    if (how == SIG_SETMASK)
        notes_add("blocks %u signals", count);
    else
        notes_add("%s %u signals more, %s", how == SIG_BLOCK ? "blocks" : "does not block", count,
                  sigismember(set, SIGTTOU) == 1 ? "SIGTTOU" : "another");
    return 0;
}

/* --- descriptors */

int __wrap_open(const char *path, int flags);
int __wrap_open(const char *path, int flags)
{
    notes_add("opens %s%s", path, flags == (O_RDWR | O_CLOEXEC) ? "" : " otherwise");
    return done("open") < 0 ? -1 : world.next++;
}

int __wrap_dup2(int from, int to);
int __wrap_dup2(int from, int to)
{
    notes_add("has %d as stream %d", from, to);
    return done("dup2") < 0 ? -1 : to;
}

int __real_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit(int resource, struct rlimit *limit)
{
    if (resource != RLIMIT_NOFILE) /* an error's words ask for others */
        return __real_getrlimit(resource, limit);
    limit->rlim_cur = whole_spawn.limit;
    return done("getrlimit");
}

int __wrap_fcntl(int fd, int command, int value);
int __wrap_fcntl(int fd, int command, int value)
{
    if (command == F_DUPFD) {
        notes_add("holds %d from %d on", fd, value);
        if (whole_spawn.taken_from == 0 || value < whole_spawn.taken_from)
            return value;
        errno = EMFILE;
        return -1;
    }
    assert_int_equal(command, F_SETFD);
    notes_add("keeps %d at the exec%s", fd, value == 0 ? "" : ", or not");
    return done("fcntl");
}

void __wrap_fds_close_at_exec(void);
void __wrap_fds_close_at_exec(void)
{
    notes_add("closes all others at the exec");
}

/* --- its world */

void __wrap_realtime_leave(void);
void __wrap_realtime_leave(void)
{
    notes_add("has ordinary priority");
}

int __wrap_setpgid(pid_t pid, pid_t group);
int __wrap_setpgid(pid_t pid, pid_t group)
{
    notes_add("moves %d to group %d", (int)pid, (int)group);
    return 0;
}

pid_t __wrap_getpgrp(void);
pid_t __wrap_getpgrp(void)
{
    return SPAWN_CHILD;
}

pid_t __wrap_getpgid(pid_t pid);
pid_t __wrap_getpgid(pid_t pid)
{
    assert_int_equal(pid, SPAWN_PARENT);
    return SPAWN_GROUP;
}

int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
    assert_int_equal(fd, STDIN_FILENO);
    return whole_spawn.terminal;
}

pid_t __wrap_tcgetpgrp(int fd);
pid_t __wrap_tcgetpgrp(int fd)
{
    assert_int_equal(fd, STDIN_FILENO);
    return whole_spawn.foreground;
}

int __wrap_tcsetpgrp(int fd, pid_t group);
int __wrap_tcsetpgrp(int fd, pid_t group)
{
    notes_add("gives the terminal of stream %d to group %d", fd, (int)group);
    return done("tcsetpgrp");
}

int __wrap_setgroups(size_t count, const gid_t *groups);
int __wrap_setgroups(size_t count, const gid_t *groups)
{
    notes_add("has %zu groups, first %u", count, groups[0]);
    return done("setgroups");
}

int __wrap_setresgid(gid_t real, gid_t effective, gid_t saved);
int __wrap_setresgid(gid_t real, gid_t effective, gid_t saved)
{
    notes_add("has group %u %u %u", real, effective, saved);
    return done("setresgid");
}

int __wrap_setresuid(uid_t real, uid_t effective, uid_t saved);
int __wrap_setresuid(uid_t real, uid_t effective, uid_t saved)
{
    notes_add("is user %u %u %u", real, effective, saved);
    return done("setresuid");
}

int __wrap_chdir(const char *path);
int __wrap_chdir(const char *path)
{
    notes_add("is in %s", path);
    return done("chdir");
}

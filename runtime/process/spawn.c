#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/fds.h"
#include "process/realtime.h"
#include "process/terminal.h"

extern char **environ;

#define HOLD_FIRST 100 /* where a child that closes 3 to 20 by habit does not find them */

/* execvp(3) puts PATH, which has at most 128 KiB (execve(2)), on the stack, and for what has no #!
 * line a second list of arguments. */
#define STACK_LEAST (256u << 10)

/* What the child could not do, and why. */
enum stage {
    STAGE_NONE,
    STAGE_STREAMS,
    STAGE_HOLD,
    STAGE_TERMINAL,
    STAGE_IDS,
    STAGE_CWD,
    STAGE_EXEC,
    STAGE_PARENT
};

/* In the memory of the parent, which stands still until the exec or the end. */
struct start {
    const struct child_spec *spec;
    const int *fds;
    pid_t parent;
    enum stage failed;
    int error;
};

static void fail(struct start *start, enum stage stage) __attribute__((noreturn));
static void fail(struct start *start, enum stage stage)
{
    start->error = errno;
    start->failed = stage;
    _exit(127);
}

static void default_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int signal = 1; signal < NSIG; signal++)
        (void)sigaction(signal, &action, NULL); /* KILL, STOP and glibc's own two refuse */
    /* Those two are left ignored by glibc's posix_spawn in what it starts (make, os.execute), and
     * so on down to us. */
    const unsigned long by_default[4] = {0}; /* struct sigaction as the kernel has it: SIG_DFL */
    /* same (swap): one more has it twice */
    for (int signal = __SIGRTMIN; signal < SIGRTMIN; signal++)
        (void)syscall(SYS_rt_sigaction, signal, by_default, NULL, sizeof(by_default[0]));
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int set_streams(const struct child_spec *spec, const int *fds)
{
    for (int stream = 0; stream < 3; stream++) {
        int fd = -1;
        if (spec->stdio[stream] == CHILD_STDIO_INHERIT)
            continue;
        if (spec->stdio[stream] == CHILD_STDIO_NULL)
            fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        else
            fd = fds[spec->stdio_fd[stream]];
        if (fd < 0 || dup2(fd, stream) < 0)
            return -1;
    }
    return 0;
}

/* At HOLD_FIRST or above where the limit of descriptors allows it; else as far up as it does. */
static int hold(int fd, unsigned count)
{
    struct rlimit limit;
    int first = HOLD_FIRST;
    /* same (swap): of so many, the first is the same */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < HOLD_FIRST + count)
        /* same (term number swap): 0 to 2 are taken, so nothing below 3 is given */
        first = limit.rlim_cur > count + 3 ? (int)limit.rlim_cur - (int)count : 3;
    int held = fcntl(fd, F_DUPFD, first);
    return held < 0 ? fcntl(fd, F_DUPFD, 3) : held; /* those up there may be taken */
}

/* Everything but the standard streams closes at the exec, except the descriptors that hold a lock:
 * those must stay open in the child and all its descendants. */
static int set_descriptors(const struct child_spec *spec, const int *fds)
{
    int held[CHILD_MAX_HOLD];
    for (unsigned i = 0; i < spec->hold_count; i++) {
        held[i] = hold(fds[spec->hold_fd[i]], spec->hold_count);
        if (held[i] < 0) /* same (number swap): 0 to 2 are taken */
            return -1;
    }
    fds_close_at_exec();
    for (unsigned i = 0; i < spec->hold_count; i++)
        if (fcntl(held[i], F_SETFD, 0) < 0)
            return -1;
    return 0;
}

static int set_ids(const struct child_spec *spec)
{
    if (!spec->set_ids)
        return 0; /* same (number): as above */
    if (setgroups(spec->group_count, spec->groups) < 0 && errno != EPERM)
        return -1;
    if (setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
        setresuid(spec->uid, spec->uid, spec->uid) < 0)
        return -1;
    return 0; /* same (number): as above */
}

static int become_child(void *argument)
{
    struct start *start = argument;
    const struct child_spec *spec = start->spec;
    realtime_leave();
    (void)setpgid(0, 0); /* cannot fail for a fresh child that leads no session */
    if (set_streams(spec, start->fds) < 0)
        fail(start, STAGE_STREAMS);
    if (set_descriptors(spec, start->fds) < 0)
        fail(start, STAGE_HOLD);
    if (spec->terminal && terminal_take(start->parent) < 0)
        fail(start, STAGE_TERMINAL);
    if (set_ids(spec) < 0)
        fail(start, STAGE_IDS);
    if (spec->cwd != NULL && chdir(spec->cwd) < 0)
        fail(start, STAGE_CWD);
    /* After the change of ids, which clears it (prctl(2)); then the parent may be gone already. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != start->parent)
        fail(start, STAGE_PARENT);
    default_signals();
    (void)execvp(spec->argv[0], spec->argv);
    fail(start, STAGE_EXEC);
}

static void describe(const struct start *start, struct crown_error *err)
{
    const struct child_spec *spec = start->spec;
    static const char *const stages[] = {
        [STAGE_STREAMS] = "set up its standard streams",
        [STAGE_HOLD] = "keep its lock open (ulimit -n may be too low)",
        [STAGE_TERMINAL] = "take the terminal",
        [STAGE_IDS] = "change to its user",
        [STAGE_CWD] = "change to its directory",
        [STAGE_EXEC] = "execute it",
        [STAGE_PARENT] = "outlive its parent",
    };
    if (start->failed == STAGE_EXEC)
        (void)error_set_errno(err, start->error, "run %s", spec->argv[0]);
    else if (start->failed == STAGE_CWD)
        (void)error_set_errno(err, start->error, "run %s: cannot change to %s", spec->argv[0],
                              spec->cwd);
    else
        (void)error_set_errno(err, start->error, "run %s: cannot %s", spec->argv[0],
                              stages[start->failed]);
}

static size_t stack_size(char *const *argv)
{
    size_t count = 0; /* same (number): the first is there */
    while (argv[count] != NULL)
        count++;
    return STACK_LEAST + (count * sizeof(*argv) & ~(size_t)15); /* it has to be aligned so */
}

/* As vfork(2): the child runs in this process's memory, on a stack of its own, and this process
 * waits, killable, until it has executed its program or ended. So nothing is copied. */
static pid_t fork_on_loan(struct start *start)
{
    size_t size = stack_size(start->spec->argv);
    char *stack =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -1;
    char **own = environ;
    environ = (char **)start->spec->envp; /* whose PATH counts */
    pid_t pid = clone(become_child, stack + size, CLONE_VM | CLONE_VFORK | SIGCHLD, start);
    int saved = errno;
    environ = own;
    (void)munmap(stack, size); /* fails for wrong arguments only */
    errno = saved;
    return pid;
}

pid_t spawn_child(const struct child_spec *spec, const int *fds, int *error,
                  struct crown_error *err)
{
    struct start start = {.spec = spec, .fds = fds, .parent = getpid()};
    pid_t pid = fork_on_loan(&start);
    if (pid < 0) { /* same (number swap): nobody is 0 */
        *error = errno;
        return error_set(err, ERROR_SYSTEM, "run %s: fork: %s", spec->argv[0],
                         error_of_start(*error));
    }
    if (start.failed == STAGE_NONE)
        return pid;
    (void)realtime_wait(pid, NULL, 0); /* it has exited */
    *error = start.error;
    describe(&start, err);
    return -1;
}

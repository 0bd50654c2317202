#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/fds.h"
#include "process/realtime.h"

extern char **environ;

#define HOLD_FIRST 100 /* where a child that closes 3 to 20 by habit does not find them */

/* What the child could not do, and why; sent over a pipe that the exec closes. */
enum stage {
    STAGE_STREAMS,
    STAGE_HOLD,
    STAGE_TERMINAL,
    STAGE_IDS,
    STAGE_CWD,
    STAGE_EXEC,
    STAGE_PARENT
};

struct failure {
    int stage;
    int error;
};

static void fail(int pipe_fd, enum stage stage, int error)
{
    const struct failure failure = {(int)stage, error};
    ssize_t ignored = write(pipe_fd, &failure, sizeof(failure));
    (void)ignored;
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
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < HOLD_FIRST + count)
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
        if (held[i] < 0)
            return -1;
    }
    fds_close_at_exec();
    for (unsigned i = 0; i < spec->hold_count; i++)
        if (fcntl(held[i], F_SETFD, 0) < 0)
            return -1;
    return 0;
}

/* Only what the program itself has: one that a shell started in the background stays there. */
static int take_terminal(pid_t parent)
{
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgid(parent))
        return 0;
    /* In the background, tcsetpgrp raises SIGTTOU, which must be blocked to be let through:
     * tcsetpgrp(3). */
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return tcsetpgrp(STDIN_FILENO, getpgrp());
}

static int set_ids(const struct child_spec *spec)
{
    if (!spec->set_ids)
        return 0;
    if (setgroups(spec->group_count, spec->groups) < 0 && errno != EPERM)
        return -1;
    return setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
                   setresuid(spec->uid, spec->uid, spec->uid) < 0
               ? -1
               : 0;
}

static void become_child(const struct child_spec *spec, const int *fds, pid_t parent, int pipe_fd)
{
    realtime_leave();
    (void)setpgid(0, 0); /* cannot fail for a fresh child that leads no session */
    if (set_streams(spec, fds) < 0)
        fail(pipe_fd, STAGE_STREAMS, errno);
    if (set_descriptors(spec, fds) < 0)
        fail(pipe_fd, STAGE_HOLD, errno);
    if (spec->terminal && take_terminal(parent) < 0)
        fail(pipe_fd, STAGE_TERMINAL, errno);
    if (set_ids(spec) < 0)
        fail(pipe_fd, STAGE_IDS, errno);
    if (spec->cwd != NULL && chdir(spec->cwd) < 0)
        fail(pipe_fd, STAGE_CWD, errno);
    /* After the change of ids, which clears it (prctl(2)); then the parent may be gone already. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        fail(pipe_fd, STAGE_PARENT, errno);
    default_signals();
    environ = (char **)spec->envp;
    (void)execvp(spec->argv[0], spec->argv);
    fail(pipe_fd, STAGE_EXEC, errno);
}

static void describe(const struct child_spec *spec, const struct failure *failure,
                     struct crown_error *err)
{
    static const char *const stages[] = {
        [STAGE_STREAMS] = "set up its standard streams",
        [STAGE_HOLD] = "keep its lock open (ulimit -n may be too low)",
        [STAGE_TERMINAL] = "take the terminal",
        [STAGE_IDS] = "change to its user",
        [STAGE_CWD] = "change to its directory",
        [STAGE_EXEC] = "execute it",
        [STAGE_PARENT] = "outlive its parent",
    };
    if (failure->stage == STAGE_EXEC)
        (void)error_set_errno(err, failure->error, "run %s", spec->argv[0]);
    else if (failure->stage == STAGE_CWD)
        (void)error_set_errno(err, failure->error, "run %s: cannot change to %s", spec->argv[0],
                              spec->cwd);
    else
        (void)error_set_errno(err, failure->error, "run %s: cannot %s", spec->argv[0],
                              stages[failure->stage]);
}

pid_t spawn_child(const struct child_spec *spec, const int *fds, int *error,
                  struct crown_error *err)
{
    int ends[2];
    pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0) {
        *error = errno;
        return error_set_errno(err, errno, "run %s: make a pipe", spec->argv[0]);
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        become_child(spec, fds, self, ends[1]);
    }
    int saved = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        *error = saved;
        return error_set_errno(err, saved, "run %s: fork", spec->argv[0]);
    }
    struct failure failure;
    ssize_t got;
    do
        got = read(ends[0], &failure, sizeof(failure));
    while (got < 0 && errno == EINTR);
    (void)close(ends[0]);
    if (got != (ssize_t)sizeof(failure))
        return pid;              /* closed by the exec */
    (void)waitpid(pid, NULL, 0); /* it exits right after writing */
    *error = failure.error;
    describe(spec, &failure, err);
    return -1;
}

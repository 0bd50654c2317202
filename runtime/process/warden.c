#include "process/warden.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/deadman.h"
#include "process/fds.h"
#include "process/pidns.h"
#include "process/plain_fork.h"
#include "process/process_stat.h"
#include "process/realtime.h"
#include "process/rounds.h"
#include "process/signals.h"
#include "process/spawn.h"
#include "process/stack.h"
#include "process/title.h"
#include "process/wire.h"

struct warden {
    int keeper; /* line to the keeper */
    int signals;
    struct deadman deadman; /* not in a namespace: the kernel drops a SIGKILL of its first process's
                               own */
    const struct warden_note *note;
    pid_t keeper_pid;
    pid_t child;
    int pidfd; /* of the child: readable when it is dead, also while a debugger holds it; or -1 */
    bool namespaced;
    bool holds; /* descriptors, which a lock lives as long as */
    bool terminal;
};

static void end_tree(const struct warden *warden) __attribute__((noreturn));

static void report(const struct warden *warden, const struct wire_message *message)
{
    /* A keeper that cannot be told is dead, and then the tree dies too. */
    if (wire_send(warden->keeper, message, NULL, 0, NULL) < 0)
        end_tree(warden);
}

static void report_unkillable(void *context, const struct rounds_refused *who)
{
    const struct warden *warden = context;
    const struct wire_message message = {
        .type = WIRE_UNKILLABLE, .pid = who->pid, .error = who->error};
    if (wire_send(warden->keeper, &message, NULL, 0, NULL) < 0)
        log_warn("process %d of a tree cannot be killed (%s): it must be ended by hand",
                 (int)who->pid, strerror(who->error));
}

/* The end: round by round. In a namespace the kernel kills everything with us, but after it has
 * closed our descriptors: too late for a lock. */
static void end_tree(const struct warden *warden)
{
    if (!warden->namespaced || warden->holds)
        rounds_kill_all(0, report_unkillable, (void *)warden);
    _exit(0);
}

static void end_with_child(const struct warden *warden, int status) __attribute__((noreturn));
static void end_with_child(const struct warden *warden, int status)
{
    const struct wire_message exited = {
        .type = WIRE_EXITED, .pid = warden->child, .status = status};
    report(warden, &exited);
    end_tree(warden);
}

static void reap(const struct warden *warden)
{
    int status;
    pid_t pid;
    int flags = WNOHANG | __WALL | (warden->terminal ? WUNTRACED : 0);
    /* same (number): 1 is nobody's child */
    for (unsigned count = 0; (pid = realtime_reap(&status, flags, count)) > 0; count++) {
        if (pid != warden->child)
            continue; /* a daemonized descendant that came to us */
        if (WIFSTOPPED(status)) {
            /* Ctrl-Z: no shell of the user's would ever continue it, and it leads. */
            if (WSTOPSIG(status) == SIGTSTP)
                (void)kill(-warden->child, SIGCONT);
            continue;
        }
        end_with_child(warden, status);
    }
}

/* The kernel tells us of the child's end when whoever traces it lets it go: that may be never. */
static void look_at_child(struct warden *warden)
{
    reap(warden);
    if (!process_is_dead(warden->child)) {
        warden->pidfd = -1; /* it would be readable for ever */
        return;
    }
    int status = process_status(warden->child);
    end_with_child(warden, status < 0 ? SIGKILL : status);
}

static void read_signals(const struct warden *warden)
{
    struct signalfd_siginfo info;
    while (read(warden->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* In a namespace no parent is to be seen; there the closed line says it. */
        if (info.ssi_signo == (uint32_t)SIGNAL_END && !warden->namespaced &&
            getppid() != warden->keeper_pid)
            end_tree(warden); /* the keeper is dead */
        reap(warden);
    }
}

static void set_timer(const struct warden *warden)
{
    if (!warden->namespaced)
        deadman_set(&warden->deadman, warden->note->deadline_ns);
}

static void read_keeper(const struct warden *warden)
{
    struct wire_message message;
    int got;
    while ((got = wire_receive(warden->keeper, &message, NULL, NULL, NULL)) > 0) {
        if (message.type == WIRE_SET_DEADLINE)
            set_timer(warden);
        /* Fails only for a child that just ended, which SIGCHLD is about to say. */
        if (message.type == WIRE_SIGNAL)
            (void)kill(message.status != 0 ? -warden->child : warden->child, message.signal);
    }
    if (got < 0)
        end_tree(warden);
}

/* There is a tree now, which has to end with the keeper and before its deadline. The timer comes
 * first: there is always something that ends this process in time. In a namespace without a lock
 * SIGKILL stays: the kernel kills the rest. It is what the keeper's timer comes to there. */
static void outlive_keeper(const struct warden *warden)
{
    set_timer(warden);
    if (warden->namespaced && !warden->holds)
        return;
    if (prctl(PR_SET_PDEATHSIG, SIGNAL_END) < 0 ||
        (!warden->namespaced && getppid() != warden->keeper_pid))
        end_tree(warden);
}

static void fail_start(const struct warden *warden, int error, const struct crown_error *err)
{
    struct wire_message message = {.type = WIRE_START_FAILED, .error = error};
    /* same (term): it is cut there in any case */
    (void)snprintf(message.text, sizeof(message.text), "%.*s", WIRE_TEXT - 1, err->message);
    (void)wire_send(warden->keeper, &message, NULL, 0, NULL); /* dead or not, we end */
    _exit(0);
}

static void start_child(struct warden *warden, const struct child_spec *spec, const int *fds)
{
    struct crown_error err;
    struct wire_message message = {.type = WIRE_STARTED};
    int error;
    warden->child = spawn_child(spec, fds, &error, &err);
    if (warden->child < 0) /* same (number swap): nobody is 0 */
        fail_start(warden, error, &err);
    outlive_keeper(warden);
    message.pid = warden->child;
    report(warden, &message);
}

static unsigned count_fds(const struct child_spec *spec)
{
    unsigned count = spec->hold_count;
    for (int stream = 0; stream < 3; stream++)
        count += spec->stdio[stream] == CHILD_STDIO_FD;
    return count;
}

/* Not the keeper's line to the runtime, above all: its end of file must mean that the keeper is
 * gone. */
static void close_others(const struct child_spec *spec, const int *fds, int line)
{
    int keep[WIRE_MAX_FDS]; /* they have come along with the spec */
    unsigned count = spec != NULL ? count_fds(spec) : 0;
    if (count > 0) /* same (always swap): nothing would be copied */
        memcpy(keep, fds, count * sizeof(*fds));
    keep[count] = line;
    fds_close_except(keep, count + 1);
}

/* Streams are the child's alone: their end of file must mean that its tree has closed them. */
static void close_streams(const struct child_spec *spec, const int *fds)
{
    for (unsigned i = 0; i + spec->hold_count < count_fds(spec); i++)
        (void)close(fds[i]);
}

/* Whatever comes of the keeper, the child does not outlive it. Until there is one, SIGKILL will do,
 * and has to: while a start hangs in the kernel (a network disk that does not answer), this process
 * acts on no other signal. */
static void bind_to_keeper(struct warden *warden)
{
    struct crown_error err;
    warden->signals = signals_open();
    if (warden->signals < 0) {
        (void)error_set_errno(&err, errno, "run a child: make a signalfd");
        fail_start(warden, EPERM, &err);
    }
    if (!warden->namespaced && deadman_open(&warden->deadman, &err) < 0)
        fail_start(warden, EPERM, &err);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
        (!warden->namespaced && getppid() != warden->keeper_pid))
        _exit(0);
}

/* @param fds room for what comes along: the spec, then what it names. */
static void await_child(struct warden *warden, struct child_spec *spec, int *fds)
{
    struct wire_message message;
    struct crown_error err;
    struct pollfd line = {.fd = warden->keeper, .events = POLLIN};
    unsigned nfds = 0; /* same (number): what it reads then is no spec */
    while (wire_receive(warden->keeper, &message, fds, &nfds, NULL) == 0)
        (void)poll(&line, 1, -1); /* fails for a signal only */
    if (nfds == 0) {              /* or the keeper has ended, and hears nothing */
        (void)error_set(&err, ERROR_SYSTEM, "run a child: no descriptors left");
        fail_start(warden, EPERM, &err);
    }
    if (child_spec_read(fds[0], spec, &err) < 0)
        fail_start(warden, EPERM, &err);
    (void)close(fds[0]);
    warden->terminal = spec->terminal;
    if (!spec->terminal)
        (void)setsid(); /* as its keeper: cannot fail, since it leads no group */
}

static void watch(struct warden *warden) __attribute__((noreturn));
static void watch(struct warden *warden)
{
    struct pollfd polls[3] = {{.fd = warden->signals, .events = POLLIN},
                              {.fd = warden->keeper, .events = POLLIN}};
    stack_release();
    for (;;) {
        polls[2] = (struct pollfd){.fd = warden->pidfd, .events = POLLIN};
        /* same (number swap): it waits for as long as it takes, and returns 0 never */
        if (poll(polls, 3, -1) < 0 && errno != EINTR)
            end_tree(warden);
        if (polls[1].revents != 0) /* same (always): there may be nothing to read */
            read_keeper(warden);
        if (polls[0].revents != 0) /* same (always): nor here */
            read_signals(warden);
        if (polls[2].revents != 0)
            look_at_child(warden);
    }
}

static void run_child(struct warden *warden, struct child_spec *spec, const int *fds)
    __attribute__((noreturn));
static void run_child(struct warden *warden, struct child_spec *spec, const int *fds)
{
    title_set("crown-warden", spec->label);
    start_child(warden, spec, fds);
    close_streams(spec, fds);
    child_spec_release(spec); /* same (order): it keeps the numbers */
    /* A SIGKILL to the group that its keeper is in leaves this process to kill the tree. The child
     * has been given the terminal by now, as one of that group's. */
    if (warden->terminal)
        (void)setpgid(0, 0);                      /* cannot fail: it leads no session */
    warden->pidfd = pidfd_open(warden->child, 0); /* there: nobody else reaps it */
    watch(warden);
}

static void warden_run(struct child_spec *spec, const int *fds, int line,
                       const struct warden_note *note, pid_t keeper, uid_t uid, gid_t gid)
{
    close_others(spec, fds, line);
    struct warden warden = {.keeper = line,
                            .note = note,
                            .keeper_pid = keeper,
                            .holds = spec->hold_count > 0,
                            .namespaced = spec->isolation == CHILD_ISOLATION_PIDNS,
                            .terminal = spec->terminal};
    struct crown_error err;
    realtime_enter_again();
    if (warden.namespaced && pidns_enter(uid, gid, &err) < 0)
        fail_start(&warden, EPERM, &err);
    bind_to_keeper(&warden);
    run_child(&warden, spec, fds);
}

static void warden_wait(int line, const struct warden_note *note, pid_t keeper)
{
    struct warden warden = {.keeper = line, .note = note, .keeper_pid = keeper};
    struct child_spec spec;
    int fds[WIRE_MAX_FDS];
    close_others(NULL, NULL, line);
    realtime_enter_again();
    bind_to_keeper(&warden);
    await_child(&warden, &spec, fds);
    run_child(&warden, &spec, fds + 1);
}

/* The kernel notes the pid before the new process runs, also when this one is killed in between. */
static pid_t fork_noted(const struct child_spec *spec, pid_t *note, struct crown_error *err)
{
    bool namespaced = spec != NULL && spec->isolation == CHILD_ISOLATION_PIDNS;
    pid_t pid = plain_fork(namespaced ? pidns_flags() : 0, note);
    if (pid >= 0)
        return pid;
    return namespaced
               ? error_set_errno(err, errno,
                                 "isolation 'pidns' is not to be had here: make a PID namespace")
               : error_set(err, ERROR_SYSTEM, "run a child: fork its warden: %s",
                           error_of_start(errno));
}

pid_t warden_start(struct child_spec *spec, const int *fds, struct warden_note *note,
                   int *keeper_end, struct crown_error *err)
{
    int ends[2];
    pid_t keeper = getpid();
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (wire_pair(ends, err) < 0)
        return -1;
    pid_t pid = fork_noted(spec, &note->pid, err);
    if (pid == 0) {
        (void)close(ends[0]);
        if (spec == NULL)
            warden_wait(ends[1], note, keeper);
        warden_run(spec, fds, ends[1], note, keeper, uid, gid);
    }
    (void)close(ends[1]);
    if (pid < 0) /* same (number swap): 0 has ended above */
        (void)close(ends[0]);
    else
        *keeper_end = ends[0];
    return pid;
}

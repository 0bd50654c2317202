#include "process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/child_spec.h"
#include "process/deadman.h"
#include "process/fds.h"
#include "process/pidns.h"
#include "process/realtime.h"
#include "process/rounds.h"
#include "process/signals.h"
#include "process/stack.h"
#include "process/terminal.h"
#include "process/title.h"
#include "process/warden.h"
#include "process/wire.h"

#define WARDEN_DIED "its warden (crown-warden) was killed, or stood still until its time was up"
#define ESCALATE_AFTER_NS NS_PER_S /* --terminate: from INT to TERM */

struct keeper {
    int runtime; /* line to the runtime */
    int signals;
    int timer;
    int line; /* to the warden */
    struct deadman deadman;
    struct child_spec spec;
    const struct keeper_home *home;
    pid_t warden;
    pid_t group; /* that it was started in: the child's own may be another one later */
    bool started, exited;
    bool interrupted; /* by the terminal, and so was the child: it need not be told once more */
    int status;       /* of the child */
    bool moved;       /* the deadline, since the start */
    bool stopping;    /* the stop signal was sent */
    int64_t stop_at_ns, kill_at_ns, deadline_ns; /* of the lease */
    int64_t stop_kill_at_ns;                     /* of STOP_CHILD */
    int64_t escalate_at_ns;
    int64_t armed_ns; /* what the timer is set to; 0: it went off */
};

static void report(const struct keeper *keeper, const struct wire_message *message)
{
    /* A runtime that cannot be told is gone; the end of file on its line says the rest. */
    (void)wire_send(keeper->runtime, message, NULL, 0, NULL);
}

/* The dead-man timers go off one after the other in the time between kill_at and the deadline, the
 * keeper's first: its death wakes the warden, which can still kill the daemons of the tree. Were
 * both to go at once, only the child would die with them. */
static int64_t keeper_deadman_ns(const struct keeper *keeper)
{
    if (keeper->kill_at_ns >= keeper->deadline_ns || keeper->deadline_ns == TIME_NEVER)
        return keeper->deadline_ns;
    return keeper->kill_at_ns + (keeper->deadline_ns - keeper->kill_at_ns) / 2;
}

static int64_t warden_deadman_ns(const struct keeper *keeper)
{
    int64_t first_ns = keeper_deadman_ns(keeper);
    return first_ns + (keeper->deadline_ns - first_ns) / 2;
}

static void report_unkillable(void *context, const struct rounds_refused *who)
{
    const struct wire_message message = {
        .type = WIRE_UNKILLABLE, .pid = who->pid, .error = who->error};
    report(context, &message);
}

/* The warden, who ends the tree should this process die now. In a namespace the kernel does, but
 * when it has closed the warden's descriptors: too late for a lock. */
static pid_t last_to_die(const struct keeper *keeper)
{
    const struct child_spec *spec = &keeper->spec;
    return spec->isolation == CHILD_ISOLATION_TREE || spec->hold_count > 0 ? keeper->warden : 0;
}

/* Kills whatever is left, says so, and ends. GONE is exact: no process of the tree exists any more.
 * While one that may not be killed lives, it is not said.
 * @param why the child ended, where it did not do so by itself; NULL: it is told already. */
static void finish(struct keeper *keeper, const char *why) __attribute__((noreturn));
static void finish(struct keeper *keeper, const char *why)
{
    if (keeper->spec.terminal)
        terminal_give_back(keeper->group);
    if (!keeper->exited)
        keeper->status = SIGKILL; /* also where it was not started yet */
    rounds_kill_all(last_to_die(keeper), report_unkillable, keeper);
    struct wire_message gone = {.type = WIRE_GONE, .status = keeper->status};
    (void)snprintf(gone.text, sizeof(gone.text), "%s", why != NULL ? why : "");
    _exit(wire_send(keeper->runtime, &gone, NULL, 0, NULL) < 0 ? KEEPER_UNTOLD : KEEPER_TOLD);
}

static void kill_now(struct keeper *keeper)
{
    const struct wire_message killed = {.type = WIRE_KILLED};
    /* This keeper can act: its timer need not make room for the warden. */
    deadman_set(&keeper->deadman, keeper->deadline_ns);
    (void)rounds_kill_once(last_to_die(keeper)); /* first the deed, then the word */
    (void)shutdown(keeper->line, SHUT_WR); /* the warden ends the tree as well: it may see more */
    report(keeper, &killed);
    finish(keeper, NULL);
}

static void signal_child(struct keeper *keeper, int signal, bool group)
{
    const struct wire_message message = {.type = WIRE_SIGNAL, .signal = signal, .status = group};
    (void)wire_send(keeper->line, &message, NULL, 0, NULL); /* a dead warden: SIGCHLD says so */
}

/* A stopped child acts on nothing but SIGCONT and SIGKILL: signal(7). */
static void signal_stop(struct keeper *keeper, int signal)
{
    const struct wire_message signalled = {.type = WIRE_SIGNALLED, .signal = signal};
    if (signal != SIGINT || !keeper->interrupted)
        signal_child(keeper, signal, true);
    signal_child(keeper, SIGCONT, true);
    report(keeper, &signalled);
}

static void begin_stop(struct keeper *keeper)
{
    if (keeper->stopping)
        return;
    keeper->stopping = true;
    if (!keeper->spec.escalate) {
        signal_stop(keeper, keeper->spec.stop_signal);
        return;
    }
    signal_stop(keeper, SIGINT);
    keeper->escalate_at_ns = clock_boottime_ns() + ESCALATE_AFTER_NS;
}

/* The lease is about to end, and no runtime has said that it was prolonged. */
static void end_term(struct keeper *keeper)
{
    if (keeper->spec.lease_signal == 0) {
        begin_stop(keeper);
        return;
    }
    keeper->stop_at_ns = TIME_NEVER;
    signal_child(keeper, keeper->spec.lease_signal, false);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void arm(struct keeper *keeper)
{
    int64_t next = earlier(keeper->kill_at_ns, keeper->stop_kill_at_ns);
    next = earlier(next, keeper->escalate_at_ns);
    if (!keeper->stopping)
        next = earlier(next, keeper->stop_at_ns);
    next = next > 0 ? next : 1; /* zero would disarm */
    if (next == keeper->armed_ns)
        return;
    keeper->armed_ns = next;
    struct itimerspec spec = {{0, 0}, {0, 0}};
    if (next != TIME_NEVER) {
        spec.it_value.tv_sec = next / NS_PER_S;
        spec.it_value.tv_nsec = next % NS_PER_S;
    }
    (void)timerfd_settime(keeper->timer, TFD_TIMER_ABSTIME, &spec, NULL); /* arguments are right */
}

static void act_on_time(struct keeper *keeper)
{
    uint64_t fired;
    ssize_t ignored =
        read(keeper->timer, &fired, sizeof(fired)); /* only so that poll waits again */
    (void)ignored;
    keeper->armed_ns = 0; /* same: what it was set to is past, and due no more */
    int64_t now = clock_boottime_ns();
    if (now >= earlier(keeper->kill_at_ns, keeper->stop_kill_at_ns))
        kill_now(keeper);
    if (now >= keeper->stop_at_ns)
        end_term(keeper);
    if (now >= keeper->escalate_at_ns) {
        keeper->escalate_at_ns = TIME_NEVER;
        signal_stop(keeper, SIGTERM);
    }
}

/* Not while it starts the child, when it reads nothing: a start that hangs would fill its line. */
static void tell_warden_of_deadline(const struct keeper *keeper)
{
    const struct wire_message message = {.type = WIRE_SET_DEADLINE};
    (void)wire_send(keeper->line, &message, NULL, 0, NULL); /* a dead warden: SIGCHLD says so */
}

static void set_deadline(struct keeper *keeper, const struct wire_message *message)
{
    keeper->stop_at_ns = message->stop_at_ns;
    keeper->kill_at_ns = message->kill_at_ns;
    keeper->deadline_ns = message->deadline_ns;
    deadman_set(&keeper->deadman, keeper_deadman_ns(keeper));
    keeper->home->warden->deadline_ns = warden_deadman_ns(keeper);
    keeper->moved = true;
    if (keeper->started)
        tell_warden_of_deadline(keeper);
}

static void read_runtime(struct keeper *keeper)
{
    struct wire_message message;
    int got;
    while ((got = wire_receive(keeper->runtime, &message, NULL, NULL, NULL)) > 0) {
        if (message.type == WIRE_SET_DEADLINE)
            set_deadline(keeper, &message);
        if (message.type == WIRE_SIGNAL)
            signal_child(keeper, message.signal, false);
        if (message.type == WIRE_STOP_CHILD) {
            keeper->stop_kill_at_ns = message.kill_at_ns;
            begin_stop(keeper);
        }
    }
    if (got < 0)
        kill_now(keeper); /* the runtime is gone: nobody watches the lease any more */
}

static void read_warden(struct keeper *keeper)
{
    struct wire_message message;
    while (wire_receive(keeper->line, &message, NULL, NULL, NULL) > 0) {
        if (message.type == WIRE_STARTED) {
            keeper->started = true;
            if (keeper->moved)
                tell_warden_of_deadline(keeper); /* it may not have seen the last one */
            if (keeper->spec.isolation == CHILD_ISOLATION_PIDNS)
                message.pid = pidns_host_pid(keeper->warden, message.pid);
            if (keeper->spec.terminal && keeper->spec.ctrl_c_ends)
                terminal_listen(keeper->signals, message.pid);
        }
        if (message.type == WIRE_EXITED) {
            keeper->exited = true;
            keeper->status = message.status;
        }
        report(keeper, &message);
    }
}

/* It is not reaped, which may take a while, before its tree is killed. And it is forgotten before
 * it is reaped: afterwards its number may be another's. */
static bool note_dead_warden(const struct keeper *keeper)
{
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)keeper->warden, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid != keeper->warden)
        return false;
    keeper->home->warden->pid = 0;
    return true;
}

/* The runtime first, so that it does not take the child's end for one of its own accord. The
 * supervisor hears of each Ctrl-C, as it would where it had the foreground. */
static void pass_interrupt_on(struct keeper *keeper)
{
    const struct wire_message interrupted = {.type = WIRE_INTERRUPTED};
    if (!keeper->interrupted)
        report(keeper, &interrupted);
    keeper->interrupted = true;
    if (getppid() == keeper->home->supervisor)
        (void)kill(keeper->home->supervisor, SIGINT);
}

/* @return whether the warden is dead. */
static bool read_signals(struct keeper *keeper)
{
    struct signalfd_siginfo info;
    bool over = false;
    while (read(keeper->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == (uint32_t)SIGNAL_END && getppid() != keeper->home->supervisor)
            kill_now(keeper);
        if (info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL) /* the terminal's, not ours */
            pass_interrupt_on(keeper);
        over = over || note_dead_warden(keeper);
    }
    return over;
}

/* One that has no child. */
static void end_warden(struct keeper *keeper)
{
    if (keeper->warden <= 0) /* same (number): 1 is nobody's child */
        return;
    (void)kill(keeper->warden, SIGKILL); /* not reaped yet: it is itself */
    keeper->home->warden->pid = 0;
    (void)realtime_wait(keeper->warden, NULL, 0);
    (void)close(keeper->line);
    keeper->warden = 0;
}

static void fail_start(struct keeper *keeper, const char *text)
{
    struct wire_message message = {.type = WIRE_START_FAILED, .error = EPERM};
    end_warden(keeper);
    /* same (order): the text is not the warden's */
    (void)snprintf(message.text, sizeof(message.text), "%s", text);
    report(keeper, &message); /* it reads GONE below, or is dead */
    message.type = WIRE_GONE;
    _exit(wire_send(keeper->runtime, &message, NULL, 0, NULL) < 0);
}

/* Has the kernel send SIGCONT for whatever the warden says: a keeper that is stopped would not hear
 * of a command's end, and its runtime would wait for it for ever. */
static void wake_on_word(int line)
{
    /* These fail for wrong arguments only. */
    (void)fcntl(line, F_SETOWN, getpid());
    (void)fcntl(line, F_SETSIG, SIGCONT);
    (void)fcntl(line, F_SETFL, fcntl(line, F_GETFL) | O_ASYNC);
}

static int start_warden(struct keeper *keeper, struct child_spec *spec, const int *fds,
                        struct crown_error *err)
{
    keeper->warden = warden_start(spec, fds, keeper->home->warden, &keeper->line, err);
    if (keeper->warden < 0) /* same (swap): nobody is 0 */
        return -1;
    wake_on_word(keeper->line);
    return 0;
}

/* To a warden that is ready, or to one that is forked for it, also where the ready one has died.
 * @param fds the spec, then what it names. */
static int hand_over(struct keeper *keeper, const int *fds, unsigned nfds, struct crown_error *err)
{
    const struct wire_message message = {.type = WIRE_START_CHILD};
    if (keeper->spec.isolation != CHILD_ISOLATION_TREE)
        end_warden(keeper);
    if (keeper->warden > 0 && wire_send(keeper->line, &message, fds, nfds, err) == 0) {
        (void)kill(keeper->warden, SIGCONT); /* somebody may have stopped it while it waited */
        return 0;
    }
    end_warden(keeper);
    return start_warden(keeper, &keeper->spec, fds + 1, err);
}

static void start(struct keeper *keeper, const int *fds, unsigned nfds)
{
    struct crown_error err = {0};
    keeper->home->warden->deadline_ns = warden_deadman_ns(keeper);
    /* Before there is a child, whose warden may start it while this process is held up. */
    deadman_set(&keeper->deadman, keeper_deadman_ns(keeper));
    if (hand_over(keeper, fds, nfds, &err) < 0)
        fail_start(keeper, err.message);
    child_spec_release(&keeper->spec);
    /* Streams are the child's alone; what holds a lock stays open here too. */
    for (unsigned i = 0; i + keeper->spec.hold_count < nfds; i++)
        (void)close(fds[i]);
    arm(keeper);
}

/* @return whether it can keep a deadline, and does not outlive its supervisor. */
static bool set_up(struct keeper *keeper)
{
    struct crown_error err = {0};
    realtime_enter_again();
    keeper->signals = signals_open();
    keeper->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return keeper->signals >= 0 && keeper->timer >= 0 &&
           deadman_open(&keeper->deadman, &err) == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 &&
           prctl(PR_SET_PDEATHSIG, SIGNAL_END) == 0 && getppid() == keeper->home->supervisor;
}

static void keep(struct keeper *keeper) __attribute__((noreturn));
static void keep(struct keeper *keeper)
{
    struct pollfd polls[] = {{.fd = keeper->timer, .events = POLLIN},
                             {.fd = keeper->signals, .events = POLLIN},
                             {.fd = keeper->runtime, .events = POLLIN},
                             {.fd = keeper->line, .events = POLLIN}};
    stack_release();
    for (;;) {
        /* same (number swap): it waits for as long as it takes, and returns 0 never */
        if (poll(polls, sizeof(polls) / sizeof(polls[0]), -1) < 0 && errno != EINTR)
            kill_now(keeper);
        if (polls[0].revents != 0)
            act_on_time(keeper);
        if (polls[2].revents != 0)
            read_runtime(keeper);
        /* In this order: all that a dead warden has said is on its line by then. */
        bool over = polls[1].revents != 0 && read_signals(keeper);
        if (over || polls[3].revents != 0)
            read_warden(keeper);
        if (over)
            finish(keeper, keeper->exited ? NULL : WARDEN_DIED);
        /* A dead warden's line stays readable for ever; its death comes as SIGCHLD. */
        if (polls[3].revents & POLLHUP)
            polls[3].fd = -1;
        arm(keeper);
    }
}

static void run(struct keeper *keeper, const int *fds, unsigned nfds) __attribute__((noreturn));
static void run(struct keeper *keeper, const int *fds, unsigned nfds)
{
    struct crown_error err = {0};
    keeper->runtime = fds[0];
    if (child_spec_read(fds[1], &keeper->spec, &err) < 0) /* it is there: launch_keeper */
        fail_start(keeper, err.message);
    title_set("crown-keeper", keeper->spec.label);
    if (!keeper->spec.terminal)
        (void)setsid(); /* cannot fail: a fresh child leads no group */
    keeper->stop_at_ns = keeper->spec.stop_at_ns;
    keeper->kill_at_ns = keeper->spec.kill_at_ns;
    keeper->deadline_ns = keeper->spec.deadline_ns;
    start(keeper, fds + 1, nfds - 1);
    keep(keeper);
}

static struct keeper keeper_at(const struct keeper_home *home)
{
    return (struct keeper){.runtime = -1,
                           .home = home,
                           .group = getpgrp(),
                           .stop_at_ns = TIME_NEVER,
                           .kill_at_ns = TIME_NEVER,
                           .deadline_ns = TIME_NEVER,
                           .escalate_at_ns = TIME_NEVER,
                           .armed_ns = TIME_NEVER,
                           .stop_kill_at_ns = TIME_NEVER};
}

void keeper_run(const int *fds, unsigned nfds, const struct keeper_home *home)
{
    struct keeper keeper = keeper_at(home);
    fds_close_except(fds, nfds);
    keeper.runtime = fds[0];
    if (!set_up(&keeper))
        fail_start(&keeper, "the keeper could not be set up");
    run(&keeper, fds, nfds);
}

/* Nobody needs it, or it would be of no use: without a warden, or under no supervisor.
 * @param code 0 only where it was given no child for certain: the supervisor tells of others. */
static void end_unused(struct keeper *keeper, int code)
{
    end_warden(keeper);
    _exit(code);
}

/* Where its warden dies, it is given no child any more; it starts one that came before.
 * @return as wire_receive, but never 0. */
static int await_child(struct keeper *keeper, int line, int *fds, unsigned *nfds)
{
    struct wire_message message;
    struct pollfd polls[] = {{.fd = line, .events = POLLIN},
                             {.fd = keeper->signals, .events = POLLIN}};
    int got;
    while ((got = wire_receive(line, &message, fds, nfds, NULL)) == 0) {
        (void)poll(polls, 2, -1); /* fails for a signal only */
        if (!read_signals(keeper))
            continue;
        (void)realtime_wait(keeper->warden, NULL, 0);
        (void)close(keeper->line);
        keeper->warden = 0;
        (void)shutdown(line, SHUT_RD); /* the supervisor then forks another keeper */
    }
    return got;
}

void keeper_wait(int line, const struct keeper_home *home)
{
    struct keeper keeper = keeper_at(home);
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0;
    struct crown_error err;
    fds_close_except(&line, 1);
    title_set("crown-spare", "");
    if (!set_up(&keeper) || start_warden(&keeper, NULL, NULL, &err) < 0)
        end_unused(&keeper, 1);                     /* a child may be on the line already */
    if (await_child(&keeper, line, fds, &nfds) < 0) /* same (number swap): never 0 */
        end_unused(&keeper, 0);
    if (nfds == 0) /* there was no room for them */
        end_unused(&keeper, 1);
    (void)close(line);
    run(&keeper, fds, nfds);
}

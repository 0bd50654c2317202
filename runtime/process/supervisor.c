#include "process/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "process/backoff.h"
#include "process/cleaning.h"
#include "process/fds.h"
#include "process/keepers.h"
#include "process/launch.h"
#include "process/process_stat.h"
#include "process/realtime.h"
#include "process/reaping.h"
#include "process/requests.h"
#include "process/rseq.h"
#include "process/signals.h"
#include "process/title.h"
#include "process/watchdog.h"
#include "process/will.h"
#include "process/wire.h"

#define TOKEN_DIGITS 32
#define YIELD_NS (10 * NS_PER_MS)          /* to whoever a last will gives the lease */
#define KEEPERS_PATIENCE_NS (2 * NS_PER_S) /* for one more keeper to end after their runtime */
/* Times the usual silence: of a runtime that leads nothing, and is asked to end. */
#define END_PATIENCE 5

/* What the supervisor is doing. */
enum state {
    RUNNING,  /* the runtime lives */
    CLEANING, /* it died: its trees are being killed */
    PAUSING,  /* backoff before the next one */
    LEAVING,  /* there is no next one: only the stores may have something to read */
};

struct supervisor {
    const struct supervisor_config *config;
    enum state state;
    pid_t runtime;
    int line; /* to the runtime */
    int signals;
    int journal;
    char token[TOKEN_DIGITS + 1];
    bool real_time;
    bool armed;         /* a death or silence means: restart */
    int64_t silence_ns; /* how long the runtime may be silent; 0: for ever */
    bool once;          /* instead of a restart `last_words` are said, and `once_code` is the end */
    int once_code;
    char last_words[WIRE_TEXT];
    struct watchdog watchdog;
    int64_t wake_ns;
    struct backoff backoff;
    int64_t hurry_ns; /* when keepers that still live are killed */
    unsigned restarts;
    int status;      /* of the last runtime */
    int stop_signal; /* the runtime has to be told to end; 0: not, or it was told */
    bool stopping;   /* somebody asked us to end */
    struct requests requests;
    struct reaping reaping;
    struct cleaning cleaning;
    struct keepers keepers;
    struct launch_spare spare;
    struct wills wills;
};

/* @return false when the line is full: it must be said later. */
static bool tell_runtime(const struct supervisor *supervisor, const struct wire_message *message)
{
    /* A runtime that is dead need not be told. */
    return supervisor->line < 0 || wire_send(supervisor->line, message, NULL, 0, NULL) == 0 ||
           errno == EPIPE || errno == ECONNRESET;
}

/* How much silence is death: of one that leads, as much as it said; of one that is asked to end,
 * some in any case. */
static void limit_silence(struct supervisor *supervisor)
{
    int64_t limit_ns = 0;
    if (supervisor->armed)
        limit_ns = supervisor->silence_ns;
    else if (supervisor->stopping)
        limit_ns = END_PATIENCE * supervisor->config->heartbeat_timeout_ns;
    watchdog_limit(&supervisor->watchdog, limit_ns);
}

static void greet_runtime(const struct supervisor *supervisor)
{
    struct wire_message held = {.type = WIRE_HELD};
    struct wire_message hello = {.type = WIRE_HELLO,
                                 .restarts = supervisor->restarts,
                                 .status = supervisor->status,
                                 .real_time = supervisor->real_time};
    (void)snprintf(held.text, sizeof(held.text), "%s", supervisor->watchdog.held);
    (void)snprintf(hello.text, sizeof(hello.text), "%s", supervisor->token);
    /* The line is new: it has room for two. */
    if (held.text[0] != '\0')
        (void)tell_runtime(supervisor, &held);
    (void)tell_runtime(supervisor, &hello);
}

static int start_runtime(struct supervisor *supervisor)
{
    struct crown_error err = {0};
    pid_t pid = launch_runtime(supervisor->config, supervisor->journal, supervisor->signals,
                               &supervisor->wills, &supervisor->line, &err);
    if (pid < 0) {
        log_warn("%s", err.message);
        return -1;
    }
    supervisor->runtime = pid;
    supervisor->armed = false;
    supervisor->state = RUNNING;
    greet_runtime(supervisor);
    watchdog_start(&supervisor->watchdog, pid);
    if (supervisor->stopping)
        supervisor->stop_signal = SIGTERM;
    limit_silence(supervisor);
    return 0;
}

static void handle_runtime(struct supervisor *supervisor, const struct wire_message *message)
{
    if (message->type == WIRE_HELD) {
        watchdog_answer(&supervisor->watchdog, message->text);
        return; /* an answer is no progress */
    }
    watchdog_beat(&supervisor->watchdog);
    /* same (number): the first nanosecond has passed */
    if (message->type == WIRE_HEARTBEAT && message->stop_at_ns > 0)
        watchdog_idle(&supervisor->watchdog, message->stop_at_ns);
    if (message->type == WIRE_ARM) {
        supervisor->armed = true;
        supervisor->silence_ns = message->stop_at_ns > 0 ? message->stop_at_ns
                                                         : supervisor->config->heartbeat_timeout_ns;
        limit_silence(supervisor);
    } else if (message->type == WIRE_DISARM) {
        supervisor->armed = false;
        limit_silence(supervisor);
    } else if (message->type == WIRE_ONCE) {
        supervisor->once = true;
        supervisor->once_code = message->status;
        (void)snprintf(supervisor->last_words, sizeof(supervisor->last_words), "%.*s",
                       WIRE_TEXT - 1, message->text);
    } else if (message->type == WIRE_TITLE) {
        title_line(message->text);
    } else if (message->type == WIRE_LOG) {
        log_set_format((enum log_format)message->log_format);
        log_set_level((enum log_level)message->log_level);
    } else if (message->type == WIRE_END_KEEPER) {
        keepers_kill(&supervisor->keepers, message->id);
    } else if (message->type == WIRE_KEEP) {
        requests_keep(&supervisor->requests);
    } else if (message->type == WIRE_PREPARE) {
        launch_prepare(&supervisor->keepers, &supervisor->spare);
    }
}

static void read_runtime(struct supervisor *supervisor)
{
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0;
    /* What it asks for must be done, or be said to have failed. */
    while (supervisor->line >= 0 && !keepers_full(&supervisor->keepers)) {
        int got = wire_receive(supervisor->line, &message, fds, &nfds, NULL);
        if (got == 0)
            return;
        if (got < 0) { /* same (number swap): 0 has returned */
            (void)close(supervisor->line);
            supervisor->line = -1; /* its death comes as SIGCHLD */
            return;
        }
        handle_runtime(supervisor, &message);
        if (message.type == WIRE_START_KEEPER)
            nfds = launch_keeper(&supervisor->keepers, &supervisor->spare, &message, fds, nfds);
        if (message.type == WIRE_WILL)
            nfds = wills_take(&supervisor->wills, message.id, fds, nfds);
        for (unsigned i = 0; i < nfds; i++)
            (void)close(fds[i]); /* the keeper has its own copies */
    }
}

static void runtime_died(struct supervisor *supervisor, int status)
{
    read_runtime(supervisor); /* what it said last: DISARM, above all */
    if (supervisor->line >= 0)
        (void)close(supervisor->line);
    supervisor->line = -1;
    supervisor->runtime = 0;
    supervisor->status = status;
    supervisor->state = CLEANING;
    supervisor->hurry_ns = clock_monotonic_ns() + KEEPERS_PATIENCE_NS;
    supervisor->stop_signal = 0;
    launch_forget(&supervisor->spare);
    cleaning_begin(&supervisor->cleaning); /* what the runtime itself forked */
}

static void child_ended(struct supervisor *supervisor, pid_t pid, int status)
{
    if (pid == supervisor->runtime)
        runtime_died(supervisor, status);
    else if (keepers_has(&supervisor->keepers, pid) && supervisor->hurry_ns != TIME_NEVER)
        supervisor->hurry_ns = clock_monotonic_ns() + KEEPERS_PATIENCE_NS; /* they do end */
    if (pid == supervisor->spare.pid)
        launch_forget(&supervisor->spare);
    if (keepers_ended(&supervisor->keepers, pid, status))
        cleaning_begin(&supervisor->cleaning);
}

static void stop_runtime(struct supervisor *supervisor, int signal)
{
    if (!supervisor->stopping) {
        supervisor->stopping = true;
        limit_silence(supervisor);
    }
    supervisor->stop_signal = signal;
}

/* Its keepers see the end of their lines. */
static void kill_runtime(struct supervisor *supervisor)
{
    supervisor->armed = false;
    if (supervisor->runtime <= 0)
        return;
    (void)kill(supervisor->runtime, SIGKILL);
    log_warn("SIGINT again: killed the runtime and its children at once; `lost` may not have run, "
             "and leases may not have been given back");
}

static void act_on(struct supervisor *supervisor, enum request request, int signal)
{
    switch (request) {
    case REQUEST_NONE:
        break;
    case REQUEST_STOP:
        stop_runtime(supervisor, signal);
        break;
    case REQUEST_END:
        kill_runtime(supervisor);
        break;
    }
}

static void read_signals(struct supervisor *supervisor)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;
    while (read(supervisor->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD && supervisor->state == RUNNING)
            watchdog_heed(&supervisor->watchdog);
        if (info.ssi_signo == SIGCHLD) {
            pid = reaping_heed(&supervisor->reaping, (pid_t)info.ssi_pid, &status);
            if (pid > 0) /* same (number): no child has the number 1 */
                child_ended(supervisor, pid, status);
        }
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP)
            act_on(
                supervisor,
                requests_signal(&supervisor->requests, (int)info.ssi_signo, clock_monotonic_ns()),
                (int)info.ssi_signo);
    }
    while ((pid = reaping_next(&supervisor->reaping, supervisor->keepers.count, &status)) > 0)
        child_ended(supervisor, pid, status);
}

/* A stopped keeper does not see the end of its line; what it leaves is an orphan. */
static void hurry_keepers(struct supervisor *supervisor)
{
    if (supervisor->state != CLEANING || supervisor->keepers.count == 0 ||
        clock_monotonic_ns() < supervisor->hurry_ns)
        return;
    supervisor->hurry_ns = TIME_NEVER; /* SIGKILL is sent once */
    keepers_signal(&supervisor->keepers, SIGKILL);
    log_warn("a keeper did not end with its runtime: killed it");
}

static bool tell_failed(void *context, uint64_t id, int error)
{
    struct wire_message failed = {.type = WIRE_KEEPER_FAILED, .id = id, .error = error};
    if (error != 0)
        (void)snprintf(failed.text, sizeof(failed.text), "run the child: fork a keeper: %s",
                       keepers_why(error));
    return tell_runtime(context, &failed);
}

/* What the runtime must hear, however full its line is at times: else it would wait for ever. */
static void pay_debts(struct supervisor *supervisor)
{
    const struct wire_message stop = {.type = WIRE_STOP, .signal = supervisor->stop_signal};
    if (supervisor->stop_signal != 0 && tell_runtime(supervisor, &stop))
        supervisor->stop_signal = 0;
    keepers_tell_failed(&supervisor->keepers, !supervisor->cleaning.orphans, tell_failed,
                        supervisor);
}

static bool owes(const struct supervisor *supervisor)
{
    return supervisor->stop_signal != 0 ||
           keepers_owed(&supervisor->keepers, !supervisor->cleaning.orphans);
}

static int exit_code(const struct supervisor *supervisor)
{
    if (supervisor->requests.interrupted && !WIFEXITED(supervisor->status))
        return 128 + SIGINT;
    if (supervisor->once && supervisor->armed) {
        log_error("%s", supervisor->last_words);
        return supervisor->once_code;
    }
    if (WIFEXITED(supervisor->status))
        return WEXITSTATUS(supervisor->status);
    log_warn("the runtime was ended by signal %d (%s)", WTERMSIG(supervisor->status),
             strsignal(WTERMSIG(supervisor->status)));
    return 128 + WTERMSIG(supervisor->status);
}

/* @return how long nothing is started. Whoever a will gives the lease to claims and starts a child
 * now: the next runtime would take a processor from it. */
static int64_t pause_ns(struct supervisor *supervisor)
{
    int64_t lasted_ns = pulse_lasted_ns(&supervisor->watchdog.pulse);
    int64_t backoff_ns = backoff_pause_ns(&supervisor->backoff, lasted_ns);
    bool sent = wills_close_ns(&supervisor->wills) != TIME_NEVER;
    /* same (swap): one is as long as the other then */
    return sent && backoff_ns < YIELD_NS ? YIELD_NS : backoff_ns;
}

/* After a death: nothing of the old runtime may live when the next one starts, or when we exit.
 * @return false when it is time to exit. */
static bool go_on(struct supervisor *supervisor)
{
    if (supervisor->state == CLEANING && supervisor->keepers.count == 0 &&
        !supervisor->cleaning.orphans) {
        wills_execute(&supervisor->wills);
        supervisor->wake_ns = clock_monotonic_ns() + pause_ns(supervisor);
        supervisor->state = supervisor->armed && !supervisor->once ? PAUSING : LEAVING;
    }
    if (supervisor->state == PAUSING && supervisor->stopping)
        supervisor->state = LEAVING;
    if (supervisor->state == LEAVING)
        return wills_close_ns(&supervisor->wills) != TIME_NEVER;
    if (supervisor->state == PAUSING && clock_monotonic_ns() >= supervisor->wake_ns) {
        supervisor->restarts++;
        if (start_runtime(supervisor) < 0) {
            supervisor->wake_ns = clock_monotonic_ns() + BACKOFF_MOST_NS;
            supervisor->state = PAUSING;
        }
    }
    return true;
}

static int64_t next_step_ns(const struct supervisor *supervisor)
{
    switch (supervisor->state) {
    case RUNNING:
        return watchdog_next_ns(&supervisor->watchdog);
    case CLEANING:
        return supervisor->keepers.count > 0 ? supervisor->hurry_ns : TIME_NEVER;
    case PAUSING:
        return supervisor->wake_ns;
    case LEAVING:
        return TIME_NEVER;
    }
    return TIME_NEVER;
}

static int64_t next_look_ns(const struct supervisor *supervisor)
{
    const int64_t looks_ns[] = {next_step_ns(supervisor), reaping_at_ns(&supervisor->reaping),
                                wills_close_ns(&supervisor->wills)};
    int64_t next_ns = TIME_NEVER;
    for (size_t i = 0; i < sizeof(looks_ns) / sizeof(looks_ns[0]); i++)
        next_ns = looks_ns[i] < next_ns ? looks_ns[i] : next_ns;
    return next_ns;
}

static int poll_timeout_ms(const struct supervisor *supervisor)
{
    int64_t next_ns = next_look_ns(supervisor);
    int64_t left_ns = next_ns == TIME_NEVER ? TIME_NEVER : next_ns - clock_monotonic_ns();
    if (supervisor->cleaning.orphans && left_ns > supervisor->cleaning.pause_ns)
        left_ns = supervisor->cleaning.pause_ns;
    if (left_ns == TIME_NEVER)
        return -1;
    return left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static void wait_for_events(struct supervisor *supervisor)
{
    struct pollfd polls[3 + WILLS_MOST] = {{.fd = supervisor->signals, .events = POLLIN},
                                           {.fd = supervisor->line},
                                           {.fd = supervisor->requests.terminal}};
    for (unsigned i = 0; i < WILLS_MOST; i++)
        polls[3 + i] = (struct pollfd){.fd = supervisor->wills.sent[i], .events = POLLIN};
    if (!keepers_full(&supervisor->keepers))
        polls[1].events |= POLLIN;
    if (owes(supervisor))
        polls[1].events |= POLLOUT;
    if (poll(polls, 3 + WILLS_MOST, poll_timeout_ms(supervisor)) < 0 && errno != EINTR)
        _exit(1); /* our death is the death of all below */
    if (polls[2].revents != 0)
        act_on(supervisor, requests_hangup(&supervisor->requests), SIGHUP);
}

/* Asks the kernel for what there is no supervisor without. Returns what it does not give, for a
 * reason in errno, or NULL. */
static const char *ask_kernel(struct supervisor *supervisor)
{
    supervisor->signals = signals_open_supervisor();
    if (supervisor->signals < 0)
        return "make a signalfd";
    supervisor->journal = memfd_create("crown-journal", MFD_CLOEXEC);
    if (supervisor->journal < 0)
        return "make a memfd";
    if (keepers_init(&supervisor->keepers) < 0)
        return "make room for keepers";
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return "become a child subreaper";
    return process_stat_refused();
}

static int set_up(struct supervisor *supervisor)
{
    const char *refused = fds_open_standard() < 0 ? "open /dev/null" : ask_kernel(supervisor);
    random_token(supervisor->token, TOKEN_DIGITS);
    if (refused != NULL) {
        log_error("set up the supervisor: %s: %s", refused, error_reason(errno));
        return -1;
    }
    requests_init(&supervisor->requests);
    title_set("crown-supervise", supervisor->config->title);
    supervisor->real_time = realtime_enter();
    rseq_leave();
    if (start_runtime(supervisor) < 0)
        return -1;
    (void)
        realtime_lock_memory(); /* not allowed: then without; after the fork, which need not wait */
    return 0;
}

int supervisor_run(const struct supervisor_config *config)
{
    struct supervisor supervisor = {.config = config, .line = -1};
    wills_init(&supervisor.wills);
    if (set_up(&supervisor) < 0)
        return 1;
    do {
        wait_for_events(&supervisor);
        read_signals(&supervisor); /* first: all that a dead runtime has said is there by then */
        read_runtime(&supervisor);
        if (supervisor.state == RUNNING)
            watchdog_look(&supervisor.watchdog);
        /* same (order): neither looks at what the other one does */
        hurry_keepers(&supervisor);
        cleaning_go_on(&supervisor.cleaning, supervisor.runtime, &supervisor.keepers);
        pay_debts(&supervisor);
        wills_close(&supervisor.wills);
    } while (go_on(&supervisor));
    return exit_code(&supervisor);
}

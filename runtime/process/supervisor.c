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
#include "process/fds.h"
#include "process/keeper.h"
#include "process/keepers.h"
#include "process/orphans.h"
#include "process/realtime.h"
#include "process/title.h"
#include "process/wire.h"

#define TOKEN_DIGITS 32
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MOST_NS (5 * NS_PER_S)
#define CALM_NS (30 * NS_PER_S) /* a runtime that lived this long starts the backoff anew */
#define CLEAN_PAUSE_NS NS_PER_MS
#define KEEPERS_PATIENCE_NS (2 * NS_PER_S) /* for keepers to end after their runtime */

/* What the supervisor is doing. */
enum state {
    RUNNING,  /* the runtime lives */
    CLEANING, /* it died: its trees are being killed */
    PAUSING,  /* backoff before the next one */
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
    bool armed;           /* a death or silence means: restart */
    int64_t silence_ns;   /* how long the runtime may be silent; 0: for ever */
    int64_t last_beat_ns; /* all three on CLOCK_MONOTONIC: a suspended host is no silence */
    int64_t started_ns;
    int64_t wake_ns;
    int64_t backoff_ns;
    int64_t hurry_ns; /* when keepers that still live are killed */
    unsigned restarts;
    int status;    /* of the last runtime */
    bool stopping; /* somebody asked us to end */
    bool interrupted;
    bool orphans; /* a keeper died before its time: what it left must be killed */
    struct keepers keepers;
};

static void say(const char *text)
{
    log_event(LOG_WARN, text, NULL, 0);
}

static void tell_runtime(struct supervisor *supervisor, const struct wire_message *message)
{
    /* A runtime that cannot be told is dead or hangs, and both are noticed elsewhere. */
    if (supervisor->line >= 0)
        (void)wire_send(supervisor->line, message, NULL, 0, NULL);
}

/* The terminal sends its signals to the whole group; only the supervisor acts on them. */
static void leave_signals_to_supervisor(void)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void become_runtime(struct supervisor *supervisor, int line, pid_t parent)
{
    (void)close(supervisor->signals);
    realtime_leave();
    leave_signals_to_supervisor();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    title_set("crown-runtime", supervisor->config->title);
    exit(supervisor->config->run_runtime(line, supervisor->journal, supervisor->config->context));
}

static int start_runtime(struct supervisor *supervisor)
{
    int ends[2];
    struct crown_error err;
    pid_t self = getpid();
    if (wire_pair(ends, &err) < 0) {
        say(err.message);
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        become_runtime(supervisor, ends[1], self);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        say("start the runtime: cannot fork");
        return -1;
    }
    supervisor->runtime = pid;
    supervisor->line = ends[0];
    supervisor->armed = false;
    supervisor->state = RUNNING;
    supervisor->started_ns = supervisor->last_beat_ns = clock_monotonic_ns();
    struct wire_message hello = {.type = WIRE_HELLO,
                                 .restarts = supervisor->restarts,
                                 .status = supervisor->status,
                                 .real_time = supervisor->real_time};
    (void)snprintf(hello.text, sizeof(hello.text), "%s", supervisor->token);
    tell_runtime(supervisor, &hello);
    if (supervisor->stopping) {
        const struct wire_message stop = {.type = WIRE_STOP, .signal = SIGTERM};
        tell_runtime(supervisor, &stop);
    }
    return 0;
}

static void start_keeper(struct supervisor *supervisor, const struct wire_message *message,
                         const int *fds, unsigned nfds)
{
    struct wire_message failed = {.type = WIRE_KEEPER_FAILED, .id = message->id, .error = EAGAIN};
    pid_t self = getpid();
    (void)snprintf(failed.text, sizeof(failed.text), "run the child: no room for a keeper");
    if (nfds < 2 || !keepers_room(&supervisor->keepers)) {
        tell_runtime(supervisor, &failed);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        keeper_run(fds[0], fds + 1, nfds - 1, self);
    if (pid > 0) {
        keepers_add(&supervisor->keepers, pid, message->id);
        return;
    }
    failed.error = errno;
    tell_runtime(supervisor, &failed);
}

static void handle_runtime(struct supervisor *supervisor, const struct wire_message *message,
                           const int *fds, unsigned nfds)
{
    supervisor->last_beat_ns = clock_monotonic_ns();
    if (message->type == WIRE_ARM) {
        supervisor->armed = true;
        supervisor->silence_ns = message->stop_at_ns > 0 ? message->stop_at_ns
                                                         : supervisor->config->heartbeat_timeout_ns;
    } else if (message->type == WIRE_DISARM) {
        supervisor->armed = false;
    } else if (message->type == WIRE_TITLE) {
        title_set("crown-supervise", message->text);
    } else if (message->type == WIRE_START_KEEPER) {
        start_keeper(supervisor, message, fds, nfds);
    }
}

static void read_runtime(struct supervisor *supervisor)
{
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0;
    while (supervisor->line >= 0) {
        int got = wire_receive(supervisor->line, &message, fds, &nfds, NULL);
        if (got == 0)
            return;
        if (got < 0) {
            (void)close(supervisor->line);
            supervisor->line = -1; /* its death comes as SIGCHLD */
            return;
        }
        handle_runtime(supervisor, &message, fds, nfds);
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
    supervisor->orphans = true; /* what the runtime itself forked */
}

static void reap(struct supervisor *supervisor)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == supervisor->runtime)
            runtime_died(supervisor, status);
        else if (keepers_ended(&supervisor->keepers, pid, status))
            supervisor->orphans = true;
    }
}

static void stop_runtime(struct supervisor *supervisor, int signal)
{
    const struct wire_message stop = {.type = WIRE_STOP, .signal = signal};
    bool again = supervisor->interrupted && signal == SIGINT;
    supervisor->stopping = true;
    supervisor->interrupted = supervisor->interrupted || signal == SIGINT;
    if (!again) {
        tell_runtime(supervisor, &stop);
        return;
    }
    /* Twice Ctrl-C: at once. The trees first, so that nothing outlives its leader. */
    keepers_signal(&supervisor->keepers, SIGTERM);
    supervisor->armed = false;
    if (supervisor->runtime > 0)
        (void)kill(supervisor->runtime, SIGKILL);
}

static void read_signals(struct supervisor *supervisor)
{
    struct signalfd_siginfo info;
    while (read(supervisor->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            stop_runtime(supervisor, (int)info.ssi_signo);
    }
    reap(supervisor);
}

static void watch_heartbeat(struct supervisor *supervisor)
{
    if (supervisor->state != RUNNING || !supervisor->armed || supervisor->silence_ns <= 0 ||
        clock_monotonic_ns() - supervisor->last_beat_ns < supervisor->silence_ns)
        return;
    char text[128];
    (void)snprintf(text, sizeof(text), "the runtime was silent for %.3g s: killing it",
                   clock_seconds_from_ns(supervisor->silence_ns));
    say(text);
    supervisor->silence_ns = 0; /* said once */
    (void)kill(supervisor->runtime, SIGKILL);
}

/* A stopped keeper does not see the end of its line; what it leaves is an orphan. */
static void hurry_keepers(struct supervisor *supervisor)
{
    if (supervisor->state != CLEANING || supervisor->keepers.count == 0 ||
        clock_monotonic_ns() < supervisor->hurry_ns)
        return;
    say("a keeper did not end with its runtime: killing it");
    supervisor->hurry_ns = TIME_NEVER; /* SIGKILL is sent once */
    keepers_signal(&supervisor->keepers, SIGKILL);
}

/* Tells the runtime, if there is one, of the keepers whose trees are gone though they could not say
 * so. */
static void report_failed_keepers(struct supervisor *supervisor)
{
    uint64_t id;
    while (keepers_take_failed(&supervisor->keepers, &id)) {
        const struct wire_message failed = {.type = WIRE_KEEPER_FAILED, .id = id};
        tell_runtime(supervisor, &failed);
    }
}

static void clean(struct supervisor *supervisor)
{
    if (supervisor->orphans &&
        orphans_kill(supervisor->runtime, &supervisor->keepers, getpid() == 1) == 0) {
        supervisor->orphans = false;
        report_failed_keepers(supervisor);
    }
}

static int exit_code(const struct supervisor *supervisor)
{
    if (supervisor->interrupted && !WIFEXITED(supervisor->status))
        return 128 + SIGINT;
    if (WIFEXITED(supervisor->status))
        return WEXITSTATUS(supervisor->status);
    char text[96];
    (void)snprintf(text, sizeof(text), "the runtime was ended by signal %d (%s)",
                   WTERMSIG(supervisor->status), strsignal(WTERMSIG(supervisor->status)));
    say(text);
    return 128 + WTERMSIG(supervisor->status);
}

/* After a death: nothing of the old runtime may live when the next one starts, or when we exit.
 * @return false when it is time to exit. */
static bool go_on(struct supervisor *supervisor)
{
    if (supervisor->state == CLEANING && supervisor->keepers.count == 0 && !supervisor->orphans) {
        if (!supervisor->armed || supervisor->stopping)
            return false;
        int64_t now = clock_monotonic_ns();
        bool calm = now - supervisor->started_ns > CALM_NS;
        supervisor->wake_ns =
            now + (calm || supervisor->restarts == 0 ? 0 : supervisor->backoff_ns);
        supervisor->backoff_ns = calm || supervisor->backoff_ns == 0 ? BACKOFF_FIRST_NS
                                 : supervisor->backoff_ns * 2 > BACKOFF_MOST_NS
                                     ? BACKOFF_MOST_NS
                                     : supervisor->backoff_ns * 2;
        supervisor->state = PAUSING;
    }
    if (supervisor->state == PAUSING && supervisor->stopping)
        return false;
    if (supervisor->state == PAUSING && clock_monotonic_ns() >= supervisor->wake_ns) {
        supervisor->restarts++;
        if (start_runtime(supervisor) < 0) {
            supervisor->wake_ns = clock_monotonic_ns() + BACKOFF_MOST_NS;
            supervisor->state = PAUSING;
        }
    }
    return true;
}

static int poll_timeout_ms(const struct supervisor *supervisor)
{
    int64_t left_ns = TIME_NEVER;
    if (supervisor->orphans)
        left_ns = CLEAN_PAUSE_NS;
    else if (supervisor->state == CLEANING && supervisor->hurry_ns != TIME_NEVER)
        left_ns = supervisor->hurry_ns - clock_monotonic_ns();
    else if (supervisor->state == PAUSING)
        left_ns = supervisor->wake_ns - clock_monotonic_ns();
    else if (supervisor->state == RUNNING && supervisor->armed && supervisor->silence_ns > 0)
        left_ns = supervisor->last_beat_ns + supervisor->silence_ns - clock_monotonic_ns();
    if (left_ns == TIME_NEVER)
        return -1;
    return left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static int open_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set,
                    SIGHUP); /* read and dropped: it ends nothing and is passed on to nobody */
    (void)sigaddset(&set, SIGPIPE);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int set_up(struct supervisor *supervisor)
{
    if (fds_open_standard() < 0)
        return -1; /* and nowhere to say so */
    random_token(supervisor->token, TOKEN_DIGITS);
    supervisor->signals = open_signals();
    supervisor->journal = memfd_create("crown-journal", MFD_CLOEXEC);
    if (supervisor->signals < 0 || supervisor->journal < 0 ||
        keepers_init(&supervisor->keepers) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        log_error("set up the supervisor: %s", strerror(errno));
        return -1;
    }
    title_set("crown-supervise", supervisor->config->title);
    realtime_lock_memory();
    supervisor->real_time = realtime_enter();
    return start_runtime(supervisor);
}

int supervisor_run(const struct supervisor_config *config)
{
    struct supervisor supervisor = {.config = config, .line = -1};
    if (set_up(&supervisor) < 0)
        return 1;
    do {
        struct pollfd polls[] = {{.fd = supervisor.signals, .events = POLLIN},
                                 {.fd = supervisor.line, .events = POLLIN}};
        if (poll(polls, 2, poll_timeout_ms(&supervisor)) < 0 && errno != EINTR)
            return 1; /* our death is the death of all below */
        read_runtime(&supervisor);
        read_signals(&supervisor);
        watch_heartbeat(&supervisor);
        hurry_keepers(&supervisor);
        clean(&supervisor);
    } while (go_on(&supervisor));
    return exit_code(&supervisor);
}

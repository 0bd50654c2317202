#include "host/host.h"

#include <errno.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/random.h"
#include "candidate/candidate.h"
#include "candidate/candidates.h"
#include "candidate/deadmen.h"
#include "candidate/journal.h"
#include "child/child.h"
#include "host/announce.h"
#include "host/script.h"
#include "net/resolve.h"
#include "telemetry/notify.h"
#include "telemetry/telemetry.h"

#define NODE_MAX 256
#define TOKEN_MAX 64
#define HEARTBEAT_SILENCE_NS (2 * NS_PER_S)
#define BEATS_A_SILENCE 4
#define TIDY_FROM_KB 8192

struct host {
    const struct host_config *config;
    struct loop *loop;
    struct lua_vm *lua;
    struct link *link;
    struct loop_watch link_watch;
    struct list processes;
    struct registry *registry;
    struct telemetry *telemetry;
    struct journal *journal;
    struct deadmen *deadmen;
    char node[NODE_MAX];
    char token[TOKEN_MAX];
    bool real_time;
    unsigned restarts;
    int last_status;
    struct random random;
    unsigned holds;
    bool main_ended, armed, stopping;
    bool exiting;
    int code, code_at_end;
    struct loop_deadline beat;
    int64_t silence_ns;
    int64_t watchdog_ns, watched_ns; /* the service manager's; and when it last heard of us */
};

/* exit(3) called by a script passes by everything else: the supervisor must know that it was meant.
 */
static struct host *exiting_host;

static void arm(struct host *host, bool armed)
{
    struct crown_error err;
    if (link_fd(host->link) < 0 || host->armed == armed)
        return;
    host->armed = armed;
    if (link_arm(host->link, armed, host->silence_ns, &err) < 0)
        log_debug("%s", err.message);
}

static void at_exit(void)
{
    if (exiting_host != NULL)
        arm(exiting_host, false);
}

/* A beat follows a turn that emptied the run queue: proof of work, not of life. */
static void beat(struct host *host)
{
    struct crown_error err;
    if (link_fd(host->link) >= 0)
        (void)link_heartbeat(host->link, &err); /* a missed beat is made up for by the next */
    int64_t now = clock_boottime_ns();
    if (host->watchdog_ns > 0 && now - host->watched_ns >= host->watchdog_ns / 2) {
        host->watched_ns = now;
        notify_send("WATCHDOG=1");
    }
    int64_t pause_ns = host->silence_ns / BEATS_A_SILENCE;
    if (host->watchdog_ns > 0 && host->watchdog_ns / 2 < pause_ns)
        pause_ns = host->watchdog_ns / 2;
    loop_at(host->loop, &host->beat, clock_add_ns(now, pause_ns));
}

static void beat_due(struct loop_deadline *deadline)
{
    /* Marks that a beat is due; the turn that follows sends it, once the run queue is empty. */
    deadline->armed = false;
}

static void turned(void *context)
{
    struct host *host = context;
    if (host->armed && host->silence_ns > 0 && !host->beat.armed)
        beat(host);
    if (host->main_ended && host->holds == 0)
        host_exit(host, host->code_at_end);
    if (host->exiting)
        loop_stop(host->loop);
}

static void stop(struct host *host, int signal)
{
    if (registry_count(host->registry) == 0) {
        host_exit(host, 128 + signal);
        return;
    }
    notify_send("STOPPING=1");
    host->stopping = true;
    host->main_ended = true; /* a script that still waits for something is not waited for */
    registry_stop_all(host->registry);
}

static void read_link(struct loop_watch *watch, unsigned events)
{
    struct host *host = container_of(watch, struct host, link_watch);
    struct wire_message message;
    struct crown_error err = {0};
    int got;
    (void)events;
    while ((got = link_receive(host->link, &message, &err)) > 0) {
        if (message.type == WIRE_STOP)
            stop(host, message.signal);
        else if (message.type == WIRE_KEEPER_FAILED)
            (void)process_keeper_failed(host, &message); /* one that is of no interest any more */
    }
    if (got < 0)
        _exit(1); /* the supervisor is gone; so are the children in a moment */
}

/* HELLO is there before anything else: the supervisor sent it right after the fork. */
static int read_hello(struct host *host, struct crown_error *err)
{
    struct wire_message message;
    int got;
    random_token(host->token, 32); /* for a runtime without a supervisor */
    if (link_fd(host->link) < 0)
        return 0;
    do
        got = link_receive(host->link, &message, err);
    while (got == 0);
    if (got < 0)
        return -1;
    (void)snprintf(host->token, sizeof(host->token), "%.63s", message.text);
    host->real_time = message.real_time != 0;
    host->restarts = message.restarts;
    host->last_status = message.status;
    host->link_watch.ready = read_link;
    loop_watch(host->loop, &host->link_watch, link_fd(host->link), LOOP_READ);
    return 0;
}

static int open_journal(struct host *host, int fd, struct crown_error *err)
{
    int own = fd >= 0 ? fd : memfd_create("crown-journal", MFD_CLOEXEC);
    if (own < 0)
        return error_set_errno(err, errno, "make the journal");
    host->journal = journal_open(own, err);
    (void)close(own); /* the mapping stays */
    return host->journal != NULL ? 0 : -1;
}

static int open_host(struct host *host, int supervisor_fd, int journal_fd, struct crown_error *err)
{
    list_init(&host->processes);
    random_seed(&host->random, random_kernel());
    host->silence_ns = HEARTBEAT_SILENCE_NS;
    host->watchdog_ns = notify_watchdog_ns();
    host->beat.fire = beat_due;
    const char *node = getenv("CROWN_NODE");
    if (node != NULL && node[0] != '\0')
        host_set_node(host, node);
    else if (gethostname(host->node, sizeof(host->node) - 1) < 0)
        host_set_node(host, "localhost");
    host->loop = loop_new(err);
    host->link = host->loop != NULL ? link_new(supervisor_fd, err) : NULL;
    if (host->link == NULL || read_hello(host, err) < 0 || open_journal(host, journal_fd, err) < 0)
        return -1;
    host->deadmen = deadmen_new(err);
    host->registry = registry_new();
    host->telemetry = telemetry_new(host);
    if (host->deadmen == NULL || host->registry == NULL || host->telemetry == NULL)
        return -1;
    host->lua = lua_vm_new(host->loop, host->config->modules, host, err);
    if (host->lua == NULL)
        return -1;
    loop_on_turn(host->loop, turned, host);
    exiting_host = host;
    return atexit(at_exit) == 0 ? 0 : error_set(err, ERROR_SYSTEM, "register the exit handler");
}

static void close_host(struct host *host)
{
    exiting_host = NULL;
    if (host->link != NULL)
        arm(host, false);
    registry_free(host->registry);
    lua_vm_free(host->lua);
    telemetry_free(host->telemetry);
    deadmen_free(host->deadmen);
    journal_close(host->journal);
    loop_unwatch(&host->link_watch);
    link_free(host->link);
    if (host->loop != NULL)
        resolver_close(host->loop);
    loop_free(host->loop);
}

static void tell_restart(struct host *host)
{
    struct log_field fields[2];
    unsigned count = 0;
    if (host->restarts == 0)
        return;
    fields[count++] = log_integer("restarts", host->restarts);
    if (WIFSIGNALED(host->last_status))
        fields[count++] = log_integer("signal", WTERMSIG(host->last_status));
    else
        fields[count++] = log_integer("code", WEXITSTATUS(host->last_status));
    telemetry_emit(host->telemetry, NULL, TELEMETRY_RUNTIME_RESTARTED, fields, count);
}

/* What declaring thousands of elections has thrown away makes room for their first claims. Not
 * worth the time for a few. */
static void tidy_up(const struct host *host)
{
    lua_State *L = lua_vm_state(host->lua);
    if (lua_gc(L, LUA_GCCOUNT, 0) > TIDY_FROM_KB)
        (void)lua_gc(L, LUA_GCCOLLECT, 0);
}

static void main_ended(struct host *host, int code)
{
    tidy_up(host);
    host->main_ended = true;
    if (host->holds == 0 || code != 0)
        host_exit(host, code);
    else if (!host->stopping) {
        arm(host, true);
        notify_send("READY=1");
    }
    tell_restart(host); /* now that whoever wants to know has subscribed */
    announce_title(host);
}

static void script_ended(int code, void *context)
{
    main_ended(context, code);
}

int host_run(int supervisor_fd, int journal_fd, void *context)
{
    struct host host = {.config = context};
    struct crown_error err = {0};
    if (open_host(&host, supervisor_fd, journal_fd, &err) < 0) {
        log_error("start the runtime: %s", err.message);
        close_host(&host);
        return 1;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* lines of a script come when they are printed */
    script_start(&host, script_ended, &host);
    if (!host.exiting)
        loop_run(host.loop);
    int code = host.code;
    close_host(&host);
    return code;
}

struct loop *host_loop(const struct host *host)
{
    return host->loop;
}

struct lua_vm *host_lua(const struct host *host)
{
    return host->lua;
}

struct link *host_link(const struct host *host)
{
    return host->link;
}

struct list *host_processes(struct host *host)
{
    return &host->processes;
}

struct registry *host_registry(const struct host *host)
{
    return host->registry;
}

struct telemetry *host_telemetry(const struct host *host)
{
    return host->telemetry;
}

struct journal *host_journal(const struct host *host)
{
    return host->journal;
}

struct deadmen *host_deadmen(const struct host *host)
{
    return host->deadmen;
}

const struct host_config *host_config(const struct host *host)
{
    return host->config;
}

const char *host_node(const struct host *host)
{
    return host->node;
}

void host_set_node(struct host *host, const char *node)
{
    (void)snprintf(host->node, sizeof(host->node), "%s", node);
}

const char *host_token(const struct host *host)
{
    return host->token;
}

bool host_real_time(const struct host *host)
{
    return host->real_time;
}

uint64_t host_random(struct host *host)
{
    return random_next(&host->random);
}

void host_set_heartbeat(struct host *host, int64_t silence_ns)
{
    host->silence_ns = silence_ns;
}

void host_hold(struct host *host)
{
    host->holds++;
}

void host_release(struct host *host)
{
    host->holds--;
    if (host->holds == 0)
        arm(host, false);
}

void host_exit(struct host *host, int code)
{
    if (host->exiting)
        return;
    host->exiting = true;
    host->code = code;
    arm(host, false);
    loop_stop(host->loop);
}

void host_set_code(struct host *host, int code)
{
    host->code_at_end = code;
}

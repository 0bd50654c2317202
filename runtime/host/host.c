#include "host/host.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/container.h"
#include "base/log.h"
#include "candidate/candidate.h"
#include "candidate/deadmen.h"
#include "candidate/journal.h"
#include "candidate/starts.h"
#include "host/announce.h"
#include "host/script.h"
#include "lua/vm.h"
#include "net/resolve.h"
#include "telemetry/notices.h"
#include "telemetry/notify.h"

#define TIDY_FROM_KB 8192

/* exit(3) called by a script passes by everything else: the supervisor must know that it was meant.
 */
static struct host *exiting_host;

static void at_exit(void)
{
    if (exiting_host != NULL)
        heartbeat_arm(&exiting_host->heartbeat, false);
}

static uint64_t given_back(const struct host *host)
{
    return telemetry_count(host->env.telemetry, TELEMETRY_LEADERSHIP_ABDICATED);
}

static void turned(void *context)
{
    struct host *host = context;
    if (host->env.stopping && given_back(host) != host->given_back) {
        host->given_back = given_back(host);
        lifetime_yield(&host->lifetime);
    }
    lifetime_turn(&host->lifetime);
}

/* --- what candidates are handed */

static void hold(struct candidate_env *env, bool on)
{
    lifetime_election(&container_of(env, struct host, env)->lifetime, on);
}

static void exit_code(struct candidate_env *env, int code)
{
    lifetime_set_code(&container_of(env, struct host, env)->lifetime, code);
}

/* --- the line to the supervisor */

static void stop_one(struct candidate *candidate, void *context)
{
    candidate_stop(candidate);
    heartbeat_progress(context);
}

static void stop(struct host *host, int signal)
{
    if (host->env.stopping)
        return; /* once is enough */
    if (candidates_count(host->env.candidates) == 0) {
        lifetime_exit(&host->lifetime, host->stays ? 0 : 128 + signal);
        return;
    }
    notify_send("STOPPING=1");
    host->env.stopping = true;
    host->given_back = given_back(host);
    lifetime_stop(&host->lifetime);
    candidates_visit(host->env.candidates, host->env.loop, stop_one, &host->heartbeat);
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
            children_keeper_failed(&host->children, &message);
    }
    if (got < 0)
        _exit(1); /* the supervisor is gone; so are the children in a moment */
}

/* HELLO, and before it perhaps HELD, are there before anything else: the supervisor sent them right
 * after the fork. */
static int read_hello(struct host *host, struct crown_error *err)
{
    struct wire_message message;
    int got;
    random_token(host->token, 32); /* for a runtime without a supervisor */
    if (link_fd(host->link) < 0)
        return 0;
    do {
        got = link_receive(host->link, &message, err);
        if (got > 0 && message.type == WIRE_HELD)
            (void)memcpy(host->held, message.text, sizeof(host->held));
    } while (got == 0 || (got > 0 && message.type != WIRE_HELLO));
    if (got < 0)
        return -1;
    (void)snprintf(host->token, sizeof(host->token), "%.63s", message.text);
    host->real_time = message.real_time != 0;
    host->restarts = message.restarts;
    host->last_status = message.status;
    host->link_watch.ready = read_link;
    loop_watch(host->env.loop, &host->link_watch, link_fd(host->link), LOOP_READ);
    return 0;
}

/* --- beginning and end */

static int open_journal(struct host *host, int fd, struct crown_error *err)
{
    int own = fd >= 0 ? fd : memfd_create("crown-journal", MFD_CLOEXEC);
    if (own < 0)
        return error_set_errno(err, errno, "make the journal");
    host->env.journal = journal_open(own, err);
    return host->env.journal != NULL ? 0 : -1;
}

static void name_node(struct host *host)
{
    const char *node = getenv("CROWN_NODE");
    if (node != NULL && node[0] != '\0')
        host_set_node(host, node);
    else if (gethostname(host->node, sizeof(host->node) - 1) < 0)
        host_set_node(host, "localhost");
}

static int open_host(struct host *host, int supervisor_fd, int journal_fd, struct crown_error *err)
{
    struct candidate_env *env = &host->env;
    random_seed(&host->random, random_kernel());
    name_node(host);
    *env = (struct candidate_env){.node = host->node,
                                  .hold = hold,
                                  .changed = announce_change,
                                  .exit_code = exit_code,
                                  .children = &host->children};
    env->loop = loop_new(err);
    host->link = env->loop != NULL ? link_new(supervisor_fd, err) : NULL;
    if (host->link == NULL)
        return -1;
    children_init(&host->children, env->loop, host->link);
    heartbeat_init(&host->heartbeat, env->loop, host->link);
    host->lifetime.loop = env->loop;
    host->lifetime.heartbeat = &host->heartbeat;
    if (read_hello(host, err) < 0 || open_journal(host, journal_fd, err) < 0)
        return -1;
    env->deadmen = deadmen_new(err);
    env->candidates = candidates_new();
    env->starts = starts_new(env);
    env->telemetry = telemetry_new(host->node, env->loop);
    if (env->deadmen == NULL || env->candidates == NULL || env->starts == NULL ||
        env->telemetry == NULL)
        return -1;
    env->lua = lua_vm_new(env->loop, host->config->modules, host, err);
    if (env->lua == NULL)
        return -1;
    heartbeat_answer(&host->heartbeat, env->lua);
    clock_set_begin(&host->clock_set, env);
    loop_on_turn(env->loop, turned, host);
    exiting_host = host;
    return atexit(at_exit) == 0 ? 0 : error_set(err, ERROR_SYSTEM, "register the exit handler");
}

static void close_one(struct candidate *candidate, void *context)
{
    (void)context;
    candidate_close(candidate);
}

static void close_host(struct host *host)
{
    struct candidate_env *env = &host->env;
    exiting_host = NULL;
    announce_end();
    notices_close();
    if (host->link != NULL)
        heartbeat_arm(&host->heartbeat, false);
    heartbeat_answer_no_more();
    if (env->candidates != NULL)
        candidates_each(env->candidates, close_one, NULL);
    candidates_free(env->candidates);
    starts_free(env->starts);
    lua_vm_free(env->lua);
    telemetry_free(env->telemetry);
    deadmen_free(env->deadmen);
    journal_close(env->journal);
    clock_set_end(&host->clock_set);
    loop_unwatch(&host->link_watch);
    link_free(host->link);
    if (env->loop != NULL)
        resolver_close(env->loop);
    loop_free(env->loop);
}

static void tell_restart(struct host *host)
{
    struct log_field fields[3];
    unsigned count = 0;
    if (host->restarts == 0)
        return;
    fields[count++] = log_integer("restarts", host->restarts);
    if (WIFSIGNALED(host->last_status))
        fields[count++] = log_integer("signal", WTERMSIG(host->last_status));
    else
        fields[count++] = log_integer("code", WEXITSTATUS(host->last_status));
    if (host->held[0] != '\0')
        fields[count++] = log_string("held", host->held);
    telemetry_emit(host->env.telemetry, NULL, TELEMETRY_RUNTIME_RESTARTED, fields, count);
}

/* What declaring thousands of elections has thrown away makes room for their first claims. Not
 * worth the time for a few. */
static void tidy_up(const struct host *host)
{
    lua_State *L = lua_vm_state(host->env.lua);
    if (lua_gc(L, LUA_GCCOUNT, 0) > TIDY_FROM_KB)
        (void)lua_gc(L, LUA_GCCOLLECT, 0);
}

static void script_ended(int code, void *context)
{
    struct host *host = context;
    tidy_up(host);
    lifetime_main_ended(&host->lifetime);
    if (!lifetime_is_held(&host->lifetime) || code != 0)
        lifetime_exit(&host->lifetime, code);
    else if (!host->lifetime.stopping) {
        heartbeat_arm(&host->heartbeat, true);
        notify_send("READY=1");
    }
    tell_restart(host); /* now that whoever wants to know has subscribed */
    announce_begin(&host->env, host->link, host->what);
}

int host_run(int supervisor_fd, int journal_fd, void *context)
{
    struct host host = {.config = context};
    struct script script = {script_ended, &host};
    struct crown_error err = {0};
    if (open_host(&host, supervisor_fd, journal_fd, &err) < 0) {
        log_error("start the runtime: %s", err.message);
        close_host(&host);
        return 1;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* lines of a script come when they are printed */
    script_start(&script, host.env.lua, host.config);
    if (!host.lifetime.exiting)
        loop_run(host.env.loop);
    int code = host.lifetime.code;
    close_host(&host);
    return code;
}

void host_set_node(struct host *host, const char *node)
{
    (void)snprintf(host->node, sizeof(host->node), "%s", node);
}

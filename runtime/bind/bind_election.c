/* crown.core.election: elections as lua/crown/elect.lua declares them. Validation is done there;
 * what is read here is plain data. Times are seconds. */
#include <lauxlib.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/child_options.h"
#include "bind/election_status.h"
#include "bind/election_timing.h"
#include "bind/fields.h"
#include "candidate/bars.h"
#include "candidate/candidate.h"
#include "host/host.h"
#include "telemetry/telemetry.h"

#define ELECTION_TYPE "crown.election"
#define CALL_TIMEOUT_DEFAULT 10.0
#define LOST_TIMEOUT_DEFAULT 30.0

static enum election_restart restart_policy(const char *word)
{
    if (word != NULL && strcmp(word, "transient") == 0)
        return ELECTION_RESTART_TRANSIENT;
    if (word != NULL && strcmp(word, "temporary") == 0)
        return ELECTION_RESTART_TEMPORARY;
    if (word != NULL && strcmp(word, "finish") == 0)
        return ELECTION_RESTART_FINISH;
    return ELECTION_RESTART_PERMANENT;
}

static void read_restart(lua_State *L, int index, struct election_config *config)
{
    config->restart = ELECTION_RESTART_PERMANENT;
    config->restart_max = 3;
    config->restart_within_ns = 60 * NS_PER_S;
    config->restart_backoff_first_ns = 100 * NS_PER_MS;
    config->restart_backoff_most_ns = 5 * NS_PER_S;
    if (!table_field(L, index, "restart"))
        return;
    int restart = lua_gettop(L);
    lua_getfield(L, restart, "policy");
    config->restart = restart_policy(lua_tostring(L, -1));
    lua_pop(L, 1);
    config->restart_max = (unsigned)number_field(L, restart, "max", config->restart_max);
    config->restart_within_ns = time_field(L, restart, "within", 60);
    config->restart_backoff_first_ns = time_field(L, restart, "backoff_first", 0.1);
    config->restart_backoff_most_ns = time_field(L, restart, "backoff_most", 5);
    lua_pop(L, 1);
}

static void read_config(lua_State *L, int index, struct election_config *config)
{
    election_timing_read(L, index, &config->timing);
    config->claim_delay_ns = time_field(L, index, "claim_delay", 0);
    config->retry_ns = time_field(L, index, "retry", 1);
    config->stand_back_ns = time_field(L, index, "stand_back", 0);
    config->ttl_ns = time_field(L, index, "ttl", 0);
    config->cool_down_ns = time_field(L, index, "cool_down", 0);
    config->call_timeout_ns = time_field(L, index, "call_timeout", CALL_TIMEOUT_DEFAULT);
    config->lost_timeout_ns = time_field(L, index, "lost_timeout", LOST_TIMEOUT_DEFAULT);
    lua_getfield(L, index, "monitor_leader");
    config->monitor_leader = lua_isnil(L, -1) || lua_toboolean(L, -1);
    lua_pop(L, 1);
    config->has_abdicate = flag_field(L, index, "has_abdicate");
    config->leaves = flag_field(L, index, "leaves");
    config->seed = random_next(&check_host(L)->random);
    read_restart(L, index, config);
}

static struct child_options *read_child(lua_State *L, int index, const char *key)
{
    if (!table_field(L, index, key))
        return NULL;
    struct child_options *options = child_options_read(L, lua_gettop(L));
    lua_pop(L, 1);
    if (options == NULL)
        luaL_error(L, "%s: not a command", key);
    return options;
}

static struct candidate **check_handle(lua_State *L)
{
    return luaL_checkudata(L, 1, ELECTION_TYPE);
}

static struct candidate *check_candidate(lua_State *L)
{
    struct candidate *candidate = *check_handle(L);
    if (candidate == NULL)
        luaL_error(L, "this election is over");
    return candidate;
}

/* election.new(object, options) -> handle, or nil, message, code. The object is anchored until the
 * election finishes. */
static int election_new(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    struct candidate_config config = {0};
    lua_getfield(L, 2, "name");
    config.name = luaL_checkstring(L, 3);
    lua_getfield(L, 2, "oracle");
    config.oracle = luaL_checkstring(L, 4);
    lua_getfield(L, 2, "node");
    config.node = luaL_optstring(L, 5, NULL);
    lua_getfield(L, 2, "store");
    config.store = luaL_optstring(L, 6, NULL);
    read_config(L, 2, &config.election);
    config.has_won = flag_field(L, 2, "has_won");
    config.has_lost = flag_field(L, 2, "has_lost");
    config.has_campaign = flag_field(L, 2, "has_campaign");
    config.has_leader = flag_field(L, 2, "has_leader");
    struct candidate **handle = lua_newuserdata(L, sizeof(*handle));
    *handle = NULL;
    luaL_getmetatable(L, ELECTION_TYPE);
    lua_setmetatable(L, -2);
    config.child = read_child(L, 2, "child");
    config.election.has_child = config.child != NULL;
    config.follower_child = read_child(L, 2, "follower_child");
    config.election.has_follower_child = config.follower_child != NULL;
    struct crown_error err = {0};
    lua_pushvalue(L, 1);
    *handle = candidate_new(&check_host(L)->env, L, &config, &err);
    if (*handle == NULL)
        return push_error(L, &err);
    /* Anchored with the object: an election that nobody holds any more goes on. */
    lua_pushvalue(L, -1);
    lua_setfield(L, 1, "handle");
    return 1;
}

static int election_gc(lua_State *L)
{
    struct candidate **handle = check_handle(L);
    candidate_free(*handle);
    *handle = NULL;
    return 0;
}

static int election_start(lua_State *L)
{
    struct candidate *candidate = check_candidate(L);
    candidate_start(candidate);
    return 0;
}

static int election_stop(lua_State *L)
{
    candidate_stop(check_candidate(L));
    return 0;
}

/* Called by the task of `won`, which is dropped unrun where its term is over before. */
static int election_won(lua_State *L)
{
    candidate_won(check_candidate(L));
    return 0;
}

static int election_abdicate(lua_State *L)
{
    candidate_abdicate(check_candidate(L));
    return 0;
}

static enum election_bar check_bar(lua_State *L, int index)
{
    const char *name = luaL_checkstring(L, index);
    for (int bar = 0; bar < ELECTION_BAR_COUNT; bar++)
        if (strcmp(name, election_bar_name((enum election_bar)bar)) == 0)
            return (enum election_bar)bar;
    luaL_error(L, "nothing bars a candidate that is called '%s'", name);
    return ELECTION_BAR_COUNT;
}

/* election:bar(what, why) */
static int election_bar_by(lua_State *L)
{
    bars_bar(check_candidate(L), check_bar(L, 2), luaL_checkstring(L, 3));
    return 0;
}

/* election:allow(what) */
static int election_allow(lua_State *L)
{
    bars_allow(check_candidate(L), check_bar(L, 2));
    return 0;
}

static int election_send(lua_State *L)
{
    struct candidate *candidate = check_candidate(L);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    if (candidate_send(candidate, L)) {
        lua_pushboolean(L, 1);
        return 1;
    }
    lua_pushnil(L);
    lua_pushfstring(L, "election '%s' takes no more messages", candidate_name(candidate));
    return 2;
}

static int election_signal(lua_State *L)
{
    struct candidate *candidate = check_candidate(L);
    lua_pushboolean(L, candidate_signal_child(candidate, luaL_checkint(L, 2)));
    return 1;
}

/* election:output() -> the end of what the leader's command has written to the log, as far as that
 * is kept, and how much it has written; nil: nothing is kept. */
static int election_output(lua_State *L)
{
    const struct tail *tail = candidate_output(check_candidate(L));
    if (tail == NULL || tail->bytes == NULL)
        return 0;
    char *bytes = lua_newuserdata(L, tail->size + 1);
    tail_copy(tail, bytes);
    lua_pushlstring(L, bytes, tail->size);
    lua_pushnumber(L, (lua_Number)tail->total);
    return 2;
}

static int election_status(lua_State *L)
{
    status_push(L, check_candidate(L));
    return 1;
}

/* election.abdicate(name) -> whether there is such an election. */
static int election_abdicate_by_name(lua_State *L)
{
    struct candidate *candidate =
        candidates_find(check_host(L)->env.candidates, luaL_checkstring(L, 1));
    lua_pushboolean(L, candidate != NULL);
    while (candidate != NULL) {
        struct candidate *next = candidates_next(candidate); /* this one may end by it */
        candidate_abdicate(candidate);
        candidate = next;
    }
    return 1;
}

/* election.declared(name [, node]) -> the candidate as Lua knows it, nil where there is none that
 * has not ended. Without a node: of one that takes part as the runtime's. */
static int election_declared(lua_State *L)
{
    struct candidate *candidate =
        candidates_find(check_host(L)->env.candidates, luaL_checkstring(L, 1));
    const char *node = luaL_optstring(L, 2, NULL);
    while (candidate != NULL && !candidate_is_of(candidate, node))
        candidate = candidates_next(candidate);
    if (candidate == NULL)
        return 0;
    candidate_push(candidate, L);
    return 1;
}

/* election.counts() -> how often each event happened. */
static int election_counts(lua_State *L)
{
    const struct telemetry *telemetry = check_host(L)->env.telemetry;
    lua_createtable(L, 0, TELEMETRY_EVENT_COUNT);
    for (int event = 0; event < TELEMETRY_EVENT_COUNT; event++) {
        lua_pushnumber(L, (lua_Number)telemetry_count(telemetry, (enum telemetry_event)event));
        lua_setfield(L, -2, telemetry_event_name((enum telemetry_event)event));
    }
    return 1;
}

static int election_is_leader(lua_State *L)
{
    struct candidate_status status;
    candidate_status(check_candidate(L), &status);
    lua_pushboolean(L, status.view.acting &&
                           loop_now(lua_vm_loop(lua_vm_of(L))) < status.view.deadline_ns);
    return 1;
}

static int election_term_remaining(lua_State *L)
{
    struct candidate *candidate = check_candidate(L);
    lua_pushnumber(L, candidate_term_remaining(candidate, (uint64_t)luaL_checknumber(L, 2)));
    return 1;
}

/* election:stand(on): candidate_stand. */
static int election_stand(lua_State *L)
{
    candidate_stand(check_candidate(L), lua_toboolean(L, 2));
    return 0;
}

/* election:deadline() -> when a term that is not over may not act any more, as core.now; nil
 * without one. */
static int election_deadline(lua_State *L)
{
    int64_t deadline_ns = candidate_deadline(check_candidate(L));
    if (deadline_ns == TIME_NEVER)
        return 0;
    lua_pushnumber(L, clock_seconds_from_ns(deadline_ns));
    return 1;
}

static int election_finished(lua_State *L)
{
    lua_pushboolean(L, candidate_finished(check_candidate(L)));
    return 1;
}

/* election.on_event(sink): sink(name, fields) for the events that somebody wants. */
static int election_on_event(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    telemetry_set_sink(check_host(L)->env.telemetry, L);
    return 0;
}

static int election_want(lua_State *L)
{
    lua_pushboolean(L, telemetry_want(check_host(L)->env.telemetry, luaL_checkstring(L, 1)));
    return 1;
}

/* election.keep_history(path, most): changes of leadership are appended to a file, which becomes
 * PATH.1 when it is longer than `most` bytes. */
static int election_keep_history(lua_State *L)
{
    struct candidate_env *env = &check_host(L)->env;
    const char *path = luaL_checkstring(L, 1);
    struct appender *appender = appender_new(env->loop, path, (off_t)luaL_checknumber(L, 2));
    if (appender == NULL)
        return luaL_error(L, "append to %s: out of memory", path);
    telemetry_keep_history(env->telemetry, appender);
    return 0;
}

/* election.events() -> the names of all events. */
static int election_events(lua_State *L)
{
    lua_createtable(L, TELEMETRY_EVENT_COUNT, 0);
    for (int event = 0; event < TELEMETRY_EVENT_COUNT; event++) {
        lua_pushstring(L, telemetry_event_name((enum telemetry_event)event));
        lua_rawseti(L, -2, event + 1);
    }
    return 1;
}

#define EMIT_MAX_FIELDS 12

/* election.emit(name, fields [, election]) -> true, or false when there is no such event. */
static int election_emit(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    struct log_field fields[EMIT_MAX_FIELDS];
    lua_settop(L, 3);
    struct candidate **handle = lua_isnil(L, 3) ? NULL : luaL_checkudata(L, 3, ELECTION_TYPE);
    unsigned count = event_fields(L, 2, fields, EMIT_MAX_FIELDS);
    lua_pushboolean(L, telemetry_emit_named(check_host(L)->env.telemetry,
                                            handle != NULL ? candidate_source(*handle) : NULL, name,
                                            fields, count));
    return 1;
}

static const luaL_Reg methods[] = {
    {"start", election_start},
    {"stop", election_stop},
    {"won", election_won},
    {"abdicate", election_abdicate},
    {"bar", election_bar_by},
    {"allow", election_allow},
    {"send", election_send},
    {"signal", election_signal},
    {"status", election_status},
    {"output", election_output},
    {"is_leader", election_is_leader},
    {"finished", election_finished},
    {"stand", election_stand},
    {"deadline", election_deadline},
    {"term_remaining", election_term_remaining},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"new", election_new},           {"on_event", election_on_event},
    {"want", election_want},         {"emit", election_emit},
    {"explain", election_explain},   {"keep_history", election_keep_history},
    {"events", election_events},     {"all", status_all},
    {"find", status_find},           {"glance", status_glance},
    {"count", status_count},         {"abdicate", election_abdicate_by_name},
    {"declared", election_declared}, {"counts", election_counts},
    {"latency", status_latency},     {"changed", status_changed},
    {"stamp", status_stamp},         {NULL, NULL},
};

int bind_open_election(lua_State *L)
{
    bind_make_type(L, ELECTION_TYPE, methods, election_gc);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

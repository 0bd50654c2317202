#include "telemetry/telemetry.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "lua/error_text.h"
#include "lua/vm.h"
#include "telemetry/gather.h"
#include "telemetry/history.h"

#define COMMON_FIELDS 7
#define MAX_FIELDS 16

static const struct {
    const char *name;
    enum log_level level;
} events[TELEMETRY_EVENT_COUNT] = {
#define TELEMETRY_ROW(name, text, level) [TELEMETRY_##name] = {text, level},
    TELEMETRY_EVENTS(TELEMETRY_ROW)};

struct telemetry {
    const char *node;
    lua_State *L; /* the main one, once there is a sink */
    int sink;     /* registry reference of a Lua function, or LUA_NOREF */
    bool wanted[TELEMETRY_EVENT_COUNT];
    bool wanted_own; /* events that only an oracle knows */
    uint64_t counts[TELEMETRY_EVENT_COUNT];
    struct latency latency;
    struct gather gather;
    struct appender *history; /* or NULL */
};

struct telemetry *telemetry_new(const char *node, struct loop *loop)
{
    struct telemetry *telemetry = calloc(1, sizeof(*telemetry));
    if (telemetry == NULL)
        return NULL;
    telemetry->node = node;
    telemetry->sink = LUA_NOREF;
    gather_init(&telemetry->gather, loop);
    return telemetry;
}

void telemetry_free(struct telemetry *telemetry)
{
    if (telemetry == NULL)
        return;
    gather_finish(&telemetry->gather);
    appender_close(telemetry->history);
    free(telemetry);
}

/* A moment for people and other machines to read; nothing is ever decided by it. */
static double wall_clock(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec / (double)NS_PER_S;
}

static unsigned common_fields(const struct telemetry *telemetry,
                              const struct telemetry_source *source, struct log_field *fields,
                              const char **store)
{
    struct telemetry_subject subject = {.name = NULL};
    unsigned count = 0;
    if (source != NULL)
        source->describe(source, &subject);
    *store = subject.store;
    if (subject.name != NULL)
        fields[count++] = log_string("name", subject.name);
    fields[count++] = log_string("node", subject.node != NULL ? subject.node : telemetry->node);
    if (subject.phase != NULL)
        fields[count++] = log_string("phase", subject.phase);
    if (subject.oracle != NULL)
        fields[count++] = log_string("oracle", subject.oracle);
    if (subject.leader != NULL)
        fields[count++] = log_string("leader", subject.leader);
    if (source != NULL)
        fields[count++] = log_integer("epoch", (int64_t)subject.epoch);
    return count;
}

static void push_field(lua_State *L, const struct log_field *field)
{
    switch (field->type) {
    case LOG_FIELD_STRING:
        lua_pushstring(L, field->string);
        break;
    case LOG_FIELD_INTEGER:
        lua_pushnumber(L, (lua_Number)field->integer);
        break;
    case LOG_FIELD_NUMBER:
        lua_pushnumber(L, field->number);
        break;
    case LOG_FIELD_BOOLEAN:
        lua_pushboolean(L, field->boolean);
        break;
    }
    lua_setfield(L, -2, field->key);
}

static void tell_sink(struct telemetry *telemetry, const char *event,
                      const struct log_field *fields, unsigned count)
{
    lua_State *L = telemetry->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, telemetry->sink);
    lua_pushstring(L, event);
    lua_createtable(L, 0, (int)count + 1);
    for (unsigned i = 0; i < count; i++)
        push_field(L, &fields[i]);
    lua_pushnumber(L, wall_clock());
    lua_setfield(L, -2, "time");
    if (lua_pcall(L, 2, 0, 0) != 0) {
        log_error("%s: a subscriber failed: %s", event, lua_error_text(L));
        lua_pop(L, 1);
    }
}

static bool is_kept(const struct telemetry *telemetry, enum telemetry_event event)
{
    return telemetry->history != NULL &&
           (event == TELEMETRY_LEADERSHIP_CHANGED || event == TELEMETRY_LEADERSHIP_LOST);
}

/* Elections of one name may be in several stores: the history tells them apart. */
static void keep(struct telemetry *telemetry, enum telemetry_event event, const char *store,
                 struct log_field *fields, unsigned count)
{
    if (store != NULL)
        fields[count++] = log_string("store", store);
    history_note(telemetry->history, events[event].name, wall_clock(), fields, count);
}

void telemetry_emit(struct telemetry *telemetry, const struct telemetry_source *source,
                    enum telemetry_event event, const struct log_field *fields, unsigned count)
{
    telemetry_emit_at(telemetry, events[event].level, source, event, fields, count);
}

void telemetry_emit_at(struct telemetry *telemetry, enum log_level level,
                       const struct telemetry_source *source, enum telemetry_event event,
                       const struct log_field *fields, unsigned count)
{
    telemetry->counts[event]++;
    bool wanted = telemetry->wanted[event] && telemetry->sink != LUA_NOREF;
    bool kept = is_kept(telemetry, event);
    if (!wanted && !kept && !log_enabled(level, events[event].name))
        return;
    struct log_field all[COMMON_FIELDS + MAX_FIELDS + 1];
    const char *store;
    unsigned total = common_fields(telemetry, source, all, &store);
    for (unsigned i = 0; i < count && i < MAX_FIELDS; i++)
        all[total++] = fields[i];
    gather_line(&telemetry->gather, level, events[event].name, all, total);
    if (kept)
        keep(telemetry, event, store, all, total);
    if (wanted)
        tell_sink(telemetry, events[event].name, all, total);
}

static bool is_own(const char *name)
{
    return strncmp(name, "oracle.", sizeof("oracle.") - 1) == 0;
}

/* @return the event of that name, or TELEMETRY_EVENT_COUNT. */
static enum telemetry_event find_event(const char *name)
{
    enum telemetry_event event = 0;
    while (event < TELEMETRY_EVENT_COUNT && strcmp(events[event].name, name) != 0)
        event++;
    return event;
}

/* An oracle may have events of its own, such as oracle.oban.query_error: told by name, at the level
 * of a warning. */
static void emit_own(struct telemetry *telemetry, const struct telemetry_source *source,
                     const char *name, const struct log_field *fields, unsigned count)
{
    struct log_field all[COMMON_FIELDS + MAX_FIELDS];
    const char *store;
    unsigned total = common_fields(telemetry, source, all, &store);
    for (unsigned i = 0; i < count && i < MAX_FIELDS; i++)
        all[total++] = fields[i];
    log_event(LOG_WARN, name, all, total);
    if (telemetry->wanted_own && telemetry->sink != LUA_NOREF)
        tell_sink(telemetry, name, all, total);
}

bool telemetry_emit_named(struct telemetry *telemetry, const struct telemetry_source *source,
                          const char *name, const struct log_field *fields, unsigned count)
{
    enum telemetry_event event = find_event(name);
    if (event < TELEMETRY_EVENT_COUNT)
        telemetry_emit(telemetry, source, event, fields, count);
    else if (is_own(name))
        emit_own(telemetry, source, name, fields, count);
    else
        return false;
    return true;
}

void telemetry_set_sink(struct telemetry *telemetry, lua_State *L)
{
    luaL_unref(L, LUA_REGISTRYINDEX, telemetry->sink);
    telemetry->L = lua_vm_state(lua_vm_of(L));
    telemetry->sink = luaL_ref(L, LUA_REGISTRYINDEX);
}

bool telemetry_want(struct telemetry *telemetry, const char *name)
{
    if (strcmp(name, "*") == 0) {
        for (unsigned event = 0; event < TELEMETRY_EVENT_COUNT; event++)
            telemetry->wanted[event] = true;
        telemetry->wanted_own = true;
        return true;
    }
    enum telemetry_event event = find_event(name);
    if (event < TELEMETRY_EVENT_COUNT)
        telemetry->wanted[event] = true;
    else if (is_own(name))
        telemetry->wanted_own = true;
    else
        return false;
    return true;
}

void telemetry_keep_history(struct telemetry *telemetry, struct appender *appender)
{
    appender_close(telemetry->history);
    telemetry->history = appender;
}

uint64_t telemetry_count(const struct telemetry *telemetry, enum telemetry_event event)
{
    return telemetry->counts[event];
}

struct latency *telemetry_latency(struct telemetry *telemetry)
{
    return &telemetry->latency;
}

const char *telemetry_event_name(enum telemetry_event event)
{
    return events[event].name;
}

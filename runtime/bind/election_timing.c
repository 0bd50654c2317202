#include "bind/election_timing.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "host/host.h"

static bool field_is(lua_State *L, int index, const char *table, const char *key, const char *word)
{
    bool same = false;
    if (table_field(L, index, table)) {
        lua_getfield(L, -1, key);
        const char *text = lua_tostring(L, -1);
        same = text != NULL && strcmp(text, word) == 0;
        lua_pop(L, 2);
    }
    return same;
}

void election_timing_read(lua_State *L, int index, struct election_timing *timing)
{
    timing->lease_ns = time_field(L, index, "lease", 0);
    timing->stop_timeout_ns = time_field(L, index, "stop_timeout", 0);
    timing->real_time = check_host(L)->real_time;
    timing->namespaced = field_is(L, index, "child", "isolation", "pidns");
}

static void set_timing(lua_State *L, const char *key, int64_t ns)
{
    if (ns == TIME_NEVER)
        return;
    lua_pushnumber(L, clock_seconds_from_ns(ns));
    lua_setfield(L, -2, key);
}

static void push_timing(lua_State *L, const struct election_schedule *schedule)
{
    lua_createtable(L, 0, 8);
    set_timing(L, "ttl", schedule->ttl_ns);
    set_timing(L, "refresh", schedule->refresh_ns);
    set_timing(L, "stop_timeout", schedule->stop_timeout_ns);
    set_timing(L, "lead", schedule->lead_ns);
    set_timing(L, "margin", schedule->margin_ns);
    set_timing(L, "stop_at", schedule->stop_at_ns);
    set_timing(L, "kill_at", schedule->kill_at_ns);
    set_timing(L, "deadline", schedule->deadline_ns);
}

int election_explain(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    struct election_timing timing = {0};
    election_timing_read(L, 1, &timing);
    int64_t ttl_ns = clock_ns_from_seconds(luaL_optnumber(L, 2, 0));
    int64_t refresh_ns = clock_ns_from_seconds(luaL_optnumber(L, 3, INFINITY));
    struct election_schedule schedule;
    struct crown_error err = {0};
    if (timing_schedule(&timing, ttl_ns, refresh_ns, &schedule, &err) < 0)
        return push_error(L, &err);
    char text[1024];
    int64_t cool_down_ns = clock_ns_from_seconds(luaL_optnumber(L, 4, 0));
    (void)timing_explain(&schedule, cool_down_ns, text, sizeof(text));
    lua_pushstring(L, text);
    push_timing(L, &schedule);
    set_timing(L, "cool_down", cool_down_ns);
    return 2;
}

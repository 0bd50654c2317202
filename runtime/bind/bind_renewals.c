/* crown.core.renewals: what the grants of a register's session carry as `refresher`
 * (candidate/renewals.h).
 *
 * renewals.new(options) -> the userdata, which is never collected. Options, times in seconds: `ttl`
 * and `delay` of each grant, `fresh`, `apart`, `patience`, `clock_set`; `renew`, a function that
 * begins a renewal and may not wait. Each renewal ends with one of these:
 *
 * renewals.count(it, sent, offset, first): it counts from `sent`, when the wall clock was ahead by
 * `offset`; refreshes come in rounds since `first`;
 * renewals.forget(it): none counts, and each term's oracle is asked;
 * renewals.fail(it, message, code): why nothing is known. */
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "candidate/renewals.h"
#include "lua/error_text.h"

struct session {
    struct renewals renewals; /* first: the userdata begins with its refresher */
    lua_State *L;
    int renew; /* registry reference */
};

static bool renew(struct renewals *renewals)
{
    struct session *session = container_of(renewals, struct session, renewals);
    lua_State *L = session->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, session->renew);
    if (lua_pcall(L, 0, 0, 0) == 0)
        return true;
    log_error("a session is not renewed: %s", lua_error_text(L));
    lua_pop(L, 1);
    return false;
}

static int new (lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_getfield(L, 1, "renew");
    luaL_checktype(L, -1, LUA_TFUNCTION);
    struct lua_vm *lua = lua_vm_of(L);
    const struct renewals_times times = {
        .ttl_ns = time_field(L, 1, "ttl", 0),
        .delay_ns = time_field(L, 1, "delay", 0),
        .fresh_ns = time_field(L, 1, "fresh", 0),
        .apart_ns = time_field(L, 1, "apart", 0),
        .patience_ns = time_field(L, 1, "patience", 0),
        .clock_set_ns = time_field(L, 1, "clock_set", 0),
    };
    int renew_function = luaL_ref(L, LUA_REGISTRYINDEX);
    struct session *session = lua_newuserdata(L, sizeof(*session));
    session->L = lua_vm_state(lua);
    session->renew = renew_function;
    renewals_init(&session->renewals, lua_vm_loop(lua), &times, renew);
    refresher_keep(L);
    return 1;
}

static struct renewals *check_renewals(lua_State *L)
{
    struct renewals *renewals = renewals_of(luaL_checkudata(L, 1, REFRESHER_TYPE));
    luaL_argcheck(L, renewals != NULL, 1, "a session's renewals expected");
    return renewals;
}

static int count(lua_State *L)
{
    struct renewals *renewals = check_renewals(L);
    renewals_count(renewals, clock_ns_from_seconds(luaL_checknumber(L, 2)),
                   clock_ns_from_seconds(luaL_checknumber(L, 3)),
                   clock_ns_from_seconds(luaL_checknumber(L, 4)));
    return 0;
}

static int forget(lua_State *L)
{
    renewals_forget(check_renewals(L));
    return 0;
}

static int fail(lua_State *L)
{
    const char *code = luaL_optstring(L, 3, "");
    renewals_fail(check_renewals(L), luaL_optstring(L, 2, "no answer"), strcmp(code, "store") == 0);
    return 0;
}

int bind_open_renewals(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"new", new}, {"count", count}, {"forget", forget}, {"fail", fail}, {NULL, NULL}};
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

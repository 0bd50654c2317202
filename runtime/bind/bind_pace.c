/* crown.core.pace: base/pace.h for Lua. pace.new([first [, most]]) -> a pace, its pauses in
 * seconds; pace.SETTLED: seconds of life that prove a connection. */
#include <lauxlib.h>

#include "base/pace.h"
#include "bind/bind.h"

#define PACE_TYPE "crown.pace"

static int64_t option_ns(lua_State *L, int index, int64_t preset_ns)
{
    return lua_isnoneornil(L, index) ? preset_ns
                                     : clock_ns_from_seconds(luaL_checknumber(L, index));
}

static int pace_new(lua_State *L)
{
    int64_t first_ns = option_ns(L, 1, PACE_FIRST_NS);
    int64_t most_ns = option_ns(L, 2, PACE_MOST_NS);
    struct pace *pace = lua_newuserdata(L, sizeof(*pace));
    pace_init(pace, first_ns, most_ns, random_kernel());
    luaL_getmetatable(L, PACE_TYPE);
    lua_setmetatable(L, -2);
    return 1;
}

/* next() -> the pause before the next try. */
static int pace_next(lua_State *L)
{
    lua_pushnumber(L, clock_seconds_from_ns(pace_next_ns(luaL_checkudata(L, 1, PACE_TYPE))));
    return 1;
}

/* reset(): what was tried is good. */
static int pace_begin_anew(lua_State *L)
{
    pace_reset(luaL_checkudata(L, 1, PACE_TYPE));
    return 0;
}

int bind_open_pace(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"next", pace_next}, {"reset", pace_begin_anew}, {NULL, NULL}};
    luaL_newmetatable(L, PACE_TYPE);
    lua_newtable(L);
    luaL_register(L, NULL, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, pace_new);
    lua_setfield(L, -2, "new");
    lua_pushnumber(L, clock_seconds_from_ns(PACE_SETTLED_NS));
    lua_setfield(L, -2, "SETTLED");
    return 1;
}

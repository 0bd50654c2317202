/* crown.core.retry: base/retry.h for Lua. retry.new([first [, most]]) -> a backoff, its pauses in
 * seconds; retry.SETTLED: seconds of life that prove a connection. */
#include <lauxlib.h>

#include "base/retry.h"
#include "bind/bind.h"

#define RETRY_TYPE "crown.retry"

static int64_t option_ns(lua_State *L, int index, int64_t preset_ns)
{
    return lua_isnoneornil(L, index) ? preset_ns
                                     : clock_ns_from_seconds(luaL_checknumber(L, index));
}

static int retry_new(lua_State *L)
{
    int64_t first_ns = option_ns(L, 1, RETRY_FIRST_NS);
    int64_t most_ns = option_ns(L, 2, RETRY_MOST_NS);
    struct retry *retry = lua_newuserdata(L, sizeof(*retry));
    retry_init(retry, first_ns, most_ns, random_kernel());
    luaL_getmetatable(L, RETRY_TYPE);
    lua_setmetatable(L, -2);
    return 1;
}

/* next() -> the pause before the next try. */
static int retry_next(lua_State *L)
{
    lua_pushnumber(L, clock_seconds_from_ns(retry_next_ns(luaL_checkudata(L, 1, RETRY_TYPE))));
    return 1;
}

/* reset(): what was tried is good. */
static int retry_begin_anew(lua_State *L)
{
    retry_reset(luaL_checkudata(L, 1, RETRY_TYPE));
    return 0;
}

int bind_open_retry(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"next", retry_next}, {"reset", retry_begin_anew}, {NULL, NULL}};
    luaL_newmetatable(L, RETRY_TYPE);
    lua_newtable(L);
    luaL_register(L, NULL, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, retry_new);
    lua_setfield(L, -2, "new");
    lua_pushnumber(L, clock_seconds_from_ns(RETRY_SETTLED_NS));
    lua_setfield(L, -2, "SETTLED");
    return 1;
}

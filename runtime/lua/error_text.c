#include "lua/error_text.h"

#include <lauxlib.h>

static int find_text(lua_State *L)
{
    if (lua_isstring(L, 1))
        return 1;
    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, "message");
        if (lua_isstring(L, -1))
            return 1;
    }
    if (luaL_callmeta(L, 1, "__tostring") && lua_isstring(L, -1))
        return 1;
    return luaL_error(L, "none"); /* as where a metamethod fails */
}

const char *lua_error_text(lua_State *L)
{
    lua_pushcfunction(L, find_text);
    lua_insert(L, -2);
    if (lua_pcall(L, 1, 1, 0) != 0) {
        lua_pop(L, 1);
        lua_pushliteral(L, "an error that is no text");
    }
    return lua_tostring(L, -1);
}

#include "candidate/refresher.h"

#include <lauxlib.h>

void refresher_keep(lua_State *L)
{
    (void)luaL_newmetatable(L, REFRESHER_TYPE);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
}

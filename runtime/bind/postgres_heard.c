#include "bind/postgres_heard.h"

#include <lauxlib.h>

void pg_heard_init(struct pg_heard *heard)
{
    heard->list = LUA_NOREF;
}

bool pg_heard_add(struct pg_heard *heard, lua_State *L, const char *channel, const char *payload)
{
    bool first = heard->list == LUA_NOREF;
    if (first) {
        lua_newtable(L);
        heard->list = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, heard->list);
    int count = (int)lua_objlen(L, -1);
    lua_pushstring(L, channel);
    lua_rawseti(L, -2, count + 1);
    if (payload != NULL)
        lua_pushstring(L, payload);
    else
        lua_pushboolean(L, false);
    lua_rawseti(L, -2, count + 2);
    lua_pop(L, 1);
    return first;
}

int pg_heard_take(struct pg_heard *heard, lua_State *L)
{
    if (heard->list == LUA_NOREF) {
        lua_newtable(L);
        return 1;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, heard->list);
    luaL_unref(L, LUA_REGISTRYINDEX, heard->list);
    heard->list = LUA_NOREF;
    return 1;
}

#include "bind/fields.h"

#include <lauxlib.h>

#include "base/clock.h"
#include <string.h>

const char *text_field(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    size_t size = 0;
    const char *text = lua_tolstring(L, -1, &size);
    if (text != NULL && strlen(text) != size)
        (void)luaL_error(L, "%s: a NUL in it", key); /* C would take what stands before it */
    lua_pop(L, 1);                                   /* it stays alive in the table */
    return text;
}

double number_field(lua_State *L, int index, const char *key, double otherwise)
{
    lua_getfield(L, index, key);
    double number = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : otherwise;
    lua_pop(L, 1);
    return number;
}

bool flag_field(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    bool flag = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return flag;
}

int64_t time_field(lua_State *L, int index, const char *key, double otherwise)
{
    return clock_ns_from_seconds(number_field(L, index, key, otherwise));
}

bool table_field(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    if (lua_type(L, -1) == LUA_TTABLE)
        return true;
    lua_pop(L, 1);
    return false;
}

static bool read_field(lua_State *L, struct log_field *field)
{
    if (lua_type(L, -2) != LUA_TSTRING)
        return false;
    const char *key = lua_tostring(L, -2);
    if (lua_type(L, -1) == LUA_TNUMBER)
        *field = log_number(key, lua_tonumber(L, -1));
    else if (lua_type(L, -1) == LUA_TBOOLEAN)
        *field = log_boolean(key, lua_toboolean(L, -1));
    else if (lua_type(L, -1) == LUA_TSTRING)
        *field = log_string(key, lua_tostring(L, -1));
    else
        return false;
    return true;
}

unsigned event_fields(lua_State *L, int index, struct log_field *fields, unsigned most)
{
    unsigned count = 0;
    struct log_field field;
    if (!lua_istable(L, index))
        return 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (!read_field(L, &field))
            continue;
        unsigned at = count;
        while (at > 0 && strcmp(fields[at - 1].key, field.key) > 0)
            at--;
        if (at == most)
            continue;
        count += count < most;
        memmove(&fields[at + 1], &fields[at], (count - 1 - at) * sizeof(*fields));
        fields[at] = field;
    }
    return count;
}

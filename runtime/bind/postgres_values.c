#include "bind/postgres_values.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bind/bind.h"

#define INTEGER_EXACT 9007199254740992LL /* 2^53: beyond it a Lua number skips integers */

void pg_write_number(char *text, lua_Number number)
{
    const bool small = number > -INTEGER_EXACT && number < INTEGER_EXACT;
    if (small && number == (lua_Number)(long long)number)
        (void)snprintf(text, PG_NUMBER_SIZE, "%lld", (long long)number);
    else
        (void)snprintf(text, PG_NUMBER_SIZE, "%.17g", number);
}

int pg_read_values(lua_State *L, int first, const char **values, char (*numbers)[PG_NUMBER_SIZE])
{
    int count = lua_gettop(L) - first + 1;
    if (count > PG_VALUES_MAX)
        return luaL_error(L, "at most %d values", PG_VALUES_MAX);
    for (int i = 0; i < count; i++) {
        int index = first + i;
        switch (lua_type(L, index)) {
        case LUA_TNIL:
            values[i] = NULL;
            break;
        case LUA_TBOOLEAN:
            values[i] = lua_toboolean(L, index) ? "t" : "f";
            break;
        case LUA_TNUMBER:
            pg_write_number(numbers[i], lua_tonumber(L, index));
            values[i] = numbers[i];
            break;
        default:
            values[i] = luaL_checkstring(L, index);
            luaL_argcheck(L, strlen(values[i]) == lua_objlen(L, index), index,
                          "a text for Postgres holds no zero byte");
        }
    }
    return count > 0 ? count : 0;
}

void pg_push_value(lua_State *L, const struct pg_result *result, int row, int column)
{
    size_t size = 0;
    const char *text = postgres_result_text(result, row, column, &size);
    enum postgres_type type = postgres_result_type(result, column);
    if (text == NULL) {
        lua_pushnil(L);
        return;
    }
    if (type == POSTGRES_BOOLEAN) {
        lua_pushboolean(L, text[0] == 't');
        return;
    }
    long long integer = type == POSTGRES_INTEGER ? strtoll(text, NULL, 10) : 0;
    if (type == POSTGRES_NUMBER)
        lua_pushnumber(L, strtod(text, NULL));
    else if (type == POSTGRES_INTEGER && integer >= -INTEGER_EXACT && integer <= INTEGER_EXACT)
        lua_pushnumber(L, (lua_Number)integer);
    else
        lua_pushlstring(L, text, size);
}

int64_t pg_time_at(lua_State *L, int index)
{
    return clock_ns_from_seconds(luaL_checknumber(L, index));
}

int pg_push_failure(lua_State *L, const struct crown_error *err, const char *sqlstate)
{
    (void)push_error(L, err);
    if (sqlstate[0] != '\0') {
        lua_pop(L, 1);
        lua_pushstring(L, sqlstate);
    }
    return 3;
}

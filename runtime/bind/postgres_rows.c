#include "bind/postgres_rows.h"

#include <lauxlib.h>
#include <stdbool.h>

#include "bind/bind.h"
#include "bind/postgres_values.h"

#define REST_TYPE "crown.postgres.rest"
#define SLICE 10000 /* values and rows that are made in one go: some 3 ms */

struct rest {
    struct pg_result *result; /* NULL: all of it was told */
};

static void push_row(lua_State *L, const struct pg_result *result, int row)
{
    int columns = postgres_result_columns(result);
    lua_createtable(L, 0, columns);
    for (int column = 0; column < columns; column++) {
        pg_push_value(L, result, row, column);
        lua_setfield(L, -2, postgres_result_name(result, column));
    }
}

/* Adds the next rows to the table at `index`. @return whether more are left. */
static bool fill(lua_State *L, int index, const struct pg_result *result)
{
    int row = (int)lua_objlen(L, index), rows = postgres_result_rows(result);
    int cost = postgres_result_columns(result) + 1;
    for (int values = 0; row < rows && values < SLICE; values += cost) {
        push_row(L, result, row++);
        lua_rawseti(L, index, row);
    }
    return row < rows;
}

int pg_push_rows(lua_State *L, struct pg_result **result)
{
    lua_createtable(L, postgres_result_rows(*result), 1);
    lua_pushnumber(L, (lua_Number)postgres_result_touched(*result));
    lua_setfield(L, -2, "affected");
    if (!fill(L, lua_gettop(L), *result))
        return 1;
    struct rest *rest = lua_newuserdata(L, sizeof(*rest));
    rest->result = *result;
    *result = NULL;
    luaL_getmetatable(L, REST_TYPE);
    lua_setmetatable(L, -2);
    return 2;
}

static struct rest *check_rest(lua_State *L)
{
    return luaL_checkudata(L, 1, REST_TYPE);
}

static int rest_gc(lua_State *L)
{
    struct rest *rest = check_rest(L);
    postgres_result_free(rest->result);
    rest->result = NULL;
    return 0;
}

static int rest_fill(lua_State *L)
{
    const struct rest *rest = check_rest(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    bool more = rest->result != NULL && fill(L, 2, rest->result);
    if (!more)
        (void)rest_gc(L);
    lua_pushboolean(L, more);
    return 1;
}

void pg_rows_make_type(lua_State *L)
{
    static const luaL_Reg methods[] = {{"fill", rest_fill}, {NULL, NULL}};
    bind_make_type(L, REST_TYPE, methods, rest_gc);
}

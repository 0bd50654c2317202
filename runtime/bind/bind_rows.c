/* crown.core.rows: base/rows.h for Lua. rows.new() -> rows. No call may wait or be interrupted.
 * Memory that is out raises. The registry's simulation loads this file as a library of its own. */
#include <lauxlib.h>

#include "base/rows.h"
#include "bind/bind.h"

#define ROWS_TYPE "crown.rows"

static struct rows *check_rows(lua_State *L)
{
    struct rows **rows = luaL_checkudata(L, 1, ROWS_TYPE);
    luaL_argcheck(L, *rows != NULL, 1, "it is gone");
    return *rows;
}

static int push_row(lua_State *L, const struct row *row)
{
    lua_pushlstring(L, row->value, row->value_size);
    lua_pushinteger(L, (lua_Integer)row->number);
    return 2;
}

static int new_rows(lua_State *L)
{
    struct rows **rows = lua_newuserdata(L, sizeof(struct rows *));
    *rows = NULL;
    luaL_getmetatable(L, ROWS_TYPE);
    lua_setmetatable(L, -2);
    *rows = rows_new();
    return *rows != NULL ? 1 : luaL_error(L, "out of memory");
}

static int free_rows(lua_State *L)
{
    struct rows **rows = luaL_checkudata(L, 1, ROWS_TYPE);
    rows_free(*rows);
    *rows = NULL;
    return 0;
}

/* count() -> how many there are. */
static int count_rows(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)rows_count(check_rows(L)));
    return 1;
}

/* The number that a name has, or nil. */
static int push_number(lua_State *L, bool there, const struct row *row)
{
    if (there)
        lua_pushinteger(L, (lua_Integer)row->number);
    else
        lua_pushnil(L);
    return 1;
}

/* put(name, value, number) -> the number that the name had, or nil. */
static int put_row(lua_State *L)
{
    struct rows *rows = check_rows(L);
    struct row row;
    struct row before;
    lua_Integer number = luaL_checkinteger(L, 4);
    row.name = luaL_checklstring(L, 2, &row.name_size);
    row.value = luaL_checklstring(L, 3, &row.value_size);
    luaL_argcheck(L, row.name_size <= ROWS_NAME_MOST, 2, "too long");
    luaL_argcheck(L, row.value_size <= ROWS_VALUE_MOST, 3, "too long");
    luaL_argcheck(L, number >= 0 && number <= (lua_Integer)UINT32_MAX, 4, "out of range");
    row.number = (uint32_t)number;
    bool there = rows_get(rows, row.name, row.name_size, &before);
    return rows_put(rows, &row) == 0 ? push_number(L, there, &before)
                                     : luaL_error(L, "out of memory");
}

/* remove(name) -> the number that it had, or nil. */
static int remove_row(lua_State *L)
{
    struct rows *rows = check_rows(L);
    struct row before;
    size_t size;
    const char *name = luaL_checklstring(L, 2, &size);
    bool there = rows_get(rows, name, size, &before);
    (void)rows_remove(rows, name, size);
    return push_number(L, there, &before);
}

/* get(name) -> its value and number, or nil. */
static int get_row(lua_State *L)
{
    const struct rows *rows = check_rows(L);
    struct row row;
    size_t size;
    const char *name = luaL_checklstring(L, 2, &size);
    return rows_get(rows, name, size, &row) ? push_row(L, &row) : 0;
}

/* at(place) -> a name, its value and number, or nil. */
static int row_at(lua_State *L)
{
    const struct rows *rows = check_rows(L);
    struct row row;
    lua_Integer place = luaL_checkinteger(L, 2);
    if (place < 1 || place > (lua_Integer)rows_count(rows) || !rows_at(rows, (uint32_t)place, &row))
        return 0;
    lua_pushlstring(L, row.name, row.name_size);
    return 1 + push_row(L, &row);
}

/* shrink(most): drops so many from the last place on -> whether there are more. */
static int shrink_rows(lua_State *L)
{
    struct rows *rows = check_rows(L);
    lua_Integer most = luaL_checkinteger(L, 2);
    luaL_argcheck(L, most >= 0 && most <= (lua_Integer)UINT32_MAX, 2, "out of range");
    lua_pushboolean(L, rows_shrink(rows, (uint32_t)most));
    return 1;
}

int bind_open_rows(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"at", row_at},         {"count", count_rows},   {"get", get_row}, {"put", put_row},
        {"remove", remove_row}, {"shrink", shrink_rows}, {NULL, NULL}};
    luaL_newmetatable(L, ROWS_TYPE);
    lua_pushcfunction(L, free_rows);
    lua_setfield(L, -2, "__gc");
    lua_newtable(L);
    luaL_register(L, NULL, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, new_rows);
    lua_setfield(L, -2, "new");
    return 1;
}

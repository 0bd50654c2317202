/* crown.core.promise() -> a value that one task waits for and another one brings: p:wait(seconds)
 * -> the values, or nil, message, "timeout"; p:resolve(…), once; later ones are ignored. */
#include <lauxlib.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/container.h"
#include "bind/bind.h"
#include "host/host.h"
#include "lua/task.h"

#define PROMISE_TYPE "crown.promise"

struct promise {
    struct op op;
    bool waiting;
    bool resolved;
    int values; /* registry reference of the value, or of a table with them */
    int count;
};

static struct promise *check_promise(lua_State *L)
{
    return luaL_checkudata(L, 1, PROMISE_TYPE);
}

static void cancelled(struct op *op)
{
    (container_of(op, struct promise, op))->waiting = false;
}

static int push_values(lua_State *L, struct op *op)
{
    struct promise *promise = container_of(op, struct promise, op);
    promise->waiting = false;
    if (promise->count == 0)
        return 0;
    lua_rawgeti(L, LUA_REGISTRYINDEX, promise->values);
    if (promise->count == 1)
        return 1;
    int table = lua_gettop(L);
    luaL_checkstack(L, promise->count, "too many values");
    for (int i = 1; i <= promise->count; i++)
        lua_rawgeti(L, table, i);
    lua_remove(L, table);
    return promise->count;
}

static int promise_new(lua_State *L)
{
    struct promise *promise = lua_newuserdata(L, sizeof(*promise));
    *promise = (struct promise){.values = LUA_NOREF};
    luaL_getmetatable(L, PROMISE_TYPE);
    lua_setmetatable(L, -2);
    return 1;
}

static int promise_wait(lua_State *L)
{
    struct promise *promise = check_promise(L);
    struct loop *loop = lua_vm_loop(lua_vm_of(L));
    int64_t until_ns =
        lua_isnoneornil(L, 2)
            ? TIME_NEVER
            : clock_add_ns(loop_now(loop), clock_ns_from_seconds(luaL_checknumber(L, 2)));
    if (promise->waiting)
        return luaL_error(L, "another task waits for this promise");
    if (promise->resolved)
        return push_values(L, &promise->op);
    op_init(&promise->op, loop, cancelled);
    promise->waiting = true;
    task_keep(L, 1);
    return task_wait(L, &promise->op, until_ns, push_values);
}

static int promise_resolve(lua_State *L)
{
    struct promise *promise = check_promise(L);
    if (promise->resolved)
        return 0;
    promise->resolved = true;
    promise->count = lua_gettop(L) - 1;
    if (promise->count > 1)
        lua_createtable(L, promise->count, 0);
    for (int i = 1; i <= promise->count && promise->count > 1; i++) {
        lua_pushvalue(L, i + 1);
        lua_rawseti(L, -2, i);
    }
    if (promise->count > 0)
        promise->values = luaL_ref(L, LUA_REGISTRYINDEX);
    if (promise->waiting)
        op_complete(&promise->op);
    return 0;
}

static int promise_gc(lua_State *L)
{
    struct promise *promise = check_promise(L);
    luaL_unref(L, LUA_REGISTRYINDEX, promise->values);
    promise->values = LUA_NOREF;
    return 0;
}

int bind_open_promise(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"wait", promise_wait}, {"resolve", promise_resolve}, {NULL, NULL}};
    bind_make_type(L, PROMISE_TYPE, methods, promise_gc);
    lua_pushcfunction(L, promise_new);
    return 1;
}

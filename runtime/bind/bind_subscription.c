/* crown.core.subscription(fn) -> subscription, or nil, message, code: it belongs to the scope that
 * opens it, and ends with it. subscription:tell(…) -> true: fn(…) runs in a task of that scope; or
 * false: it is closed. subscription:close(). */
#include <lauxlib.h>

#include "base/container.h"
#include "bind/bind.h"
#include "bind/handle.h"
#include "lua/task.h"

#define SUBSCRIPTION_TYPE "crown.subscription"

static struct handle *check_subscription(lua_State *L)
{
    return luaL_checkudata(L, 1, SUBSCRIPTION_TYPE);
}

static void scope_ended(struct scope_member *member)
{
    handle_close(container_of(member, struct handle, member));
}

static const struct scope_kind subscription_kind = {.name = "subscription", .end = scope_ended};

static int subscription_new(lua_State *L)
{
    struct scope *scope = task_scope_here(lua_vm_of(L));
    luaL_checktype(L, 1, LUA_TFUNCTION);
    if (scope_closed(scope))
        return push_scope_over(L);
    struct handle *handle = lua_newuserdata(L, sizeof(*handle));
    *handle = (struct handle){.open = false};
    luaL_getmetatable(L, SUBSCRIPTION_TYPE);
    lua_setmetatable(L, -2);
    handle_open(L, handle, lua_gettop(L), 1, scope, &subscription_kind);
    return 1;
}

static int subscription_tell(lua_State *L)
{
    struct handle *handle = check_subscription(L);
    int nargs = lua_gettop(L) - 1;
    bool open = handle->open;
    if (open)
        handle_call_from(L, handle, nargs);
    lua_pushboolean(L, open);
    return 1;
}

static int subscription_close(lua_State *L)
{
    handle_close(check_subscription(L));
    return 0;
}

int bind_open_subscription(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"tell", subscription_tell}, {"close", subscription_close}, {NULL, NULL}};
    bind_make_type(L, SUBSCRIPTION_TYPE, methods, subscription_close);
    lua_pushcfunction(L, subscription_new);
    return 1;
}

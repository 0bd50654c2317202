/* crown.core.subscription(fn [, ended]) -> subscription, or nil, message, code: it belongs to the
 * scope that opens it, and ends with it; then ended() is called, which may not wait.
 * subscription:tell(…) -> true: fn(…) runs in a task of that scope; or false: it is closed.
 * subscription:close(). */
#include <lauxlib.h>

#include "base/container.h"
#include "base/log.h"
#include "bind/bind.h"
#include "bind/handle.h"
#include "lua/error_text.h"
#include "lua/task.h"

#define SUBSCRIPTION_TYPE "crown.subscription"

struct subscription {
    struct handle handle;
    int ended; /* registry reference, or LUA_NOREF */
};

static struct subscription *check_subscription(lua_State *L)
{
    return luaL_checkudata(L, 1, SUBSCRIPTION_TYPE);
}

static void release(struct subscription *subscription, lua_State *L)
{
    luaL_unref(L, LUA_REGISTRYINDEX, subscription->ended);
    subscription->ended = LUA_NOREF;
    handle_close(&subscription->handle);
}

static void scope_ended(struct scope_member *member)
{
    struct subscription *subscription = container_of(member, struct subscription, handle.member);
    lua_State *L = lua_vm_state(subscription->handle.vm);
    bool tells = subscription->ended != LUA_NOREF;
    if (tells)
        lua_rawgeti(L, LUA_REGISTRYINDEX, subscription->ended);
    release(subscription, L);
    if (tells && lua_pcall(L, 0, 0, 0) != 0) {
        log_error("a subscription's end failed: %s", lua_error_text(L));
        lua_pop(L, 1);
    }
}

static const struct scope_kind subscription_kind = {.name = "subscription", .end = scope_ended};

static int subscription_new(lua_State *L)
{
    struct scope *scope = task_scope_here(L);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 2);
    if (scope_closed(scope))
        return push_scope_over(L);
    struct subscription *subscription = lua_newuserdata(L, sizeof(*subscription));
    *subscription = (struct subscription){.ended = LUA_NOREF};
    luaL_getmetatable(L, SUBSCRIPTION_TYPE);
    lua_setmetatable(L, -2);
    handle_open(L, &subscription->handle, 3, 1, scope, &subscription_kind);
    lua_pushvalue(L, 2);
    if (lua_isfunction(L, -1))
        subscription->ended = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_settop(L, 3);
    return 1;
}

static int subscription_tell(lua_State *L)
{
    struct handle *handle = &check_subscription(L)->handle;
    bool open = handle->open;
    if (open)
        handle_call_from(L, handle, lua_gettop(L) - 1);
    lua_pushboolean(L, open);
    return 1;
}

static int subscription_close(lua_State *L)
{
    release(check_subscription(L), L);
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

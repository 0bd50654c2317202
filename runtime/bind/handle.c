#include "bind/handle.h"

#include <assert.h>
#include <lauxlib.h>

#include "base/log.h"
#include "bind/bind.h"

void handle_open(lua_State *L, struct handle *handle, int self, int function, struct scope *scope,
                 const struct scope_kind *kind)
{
    bool entered = scope_enter(scope, &handle->member, kind);
    assert(entered);
    handle->vm = lua_vm_of(L);
    handle->open = true;
    lua_pushvalue(L, function);
    handle->function = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, self);
    handle->self = luaL_ref(L, LUA_REGISTRYINDEX);
}

lua_State *handle_push(struct handle *handle)
{
    lua_State *L = lua_vm_state(handle->vm);
    lua_rawgeti(L, LUA_REGISTRYINDEX, handle->function);
    return L;
}

bool handle_ask(struct handle *handle, int nargs, task_done *done, void *context)
{
    return task_spawn(handle->vm, lua_vm_state(handle->vm), nargs, handle->member.scope, done,
                      context) != NULL;
}

void handle_call(struct handle *handle, int nargs)
{
    (void)handle_ask(handle, nargs, NULL, NULL); /* one whose scope is ending hears no more */
}

void handle_call_from(lua_State *L, struct handle *handle, int nargs)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, handle->function);
    lua_insert(L, -nargs - 1);
    (void)task_spawn(handle->vm, L, nargs, handle->member.scope, NULL, NULL); /* as handle_call */
}

void handle_close(struct handle *handle)
{
    if (!handle->open)
        return;
    lua_State *L = lua_vm_state(handle->vm);
    handle->open = false;
    luaL_unref(L, LUA_REGISTRYINDEX, handle->function);
    luaL_unref(L, LUA_REGISTRYINDEX, handle->self);
    scope_leave(&handle->member);
}

int push_scope_over(lua_State *L)
{
    struct crown_error err;
    if (task_finalizes(L)) {
        (void)error_set(&err, ERROR_CLOSED,
                        "a finalizer belongs to no task and to no term: it starts nothing");
        log_warn("%s", err.message);
    } else {
        (void)error_set(&err, ERROR_CLOSED, "the term is over");
    }
    return push_error(L, &err);
}

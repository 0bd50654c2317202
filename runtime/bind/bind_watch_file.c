/* crown.core.watch_file(path, fn) -> watch, or nil, message: fn(event) runs in a task for each
 * change of the file, also when it is made, replaced or removed later. Events: "created",
 * "modified", "closed", "attrib", "deleted". */
#include <lauxlib.h>
#include <limits.h>

#include "base/container.h"
#include "bind/bind.h"
#include "bind/handle.h"
#include "loop/file_watch.h"
#include "lua/task.h"

#define WATCH_TYPE "crown.watch"

struct lua_watch {
    struct handle handle;
    struct file_watch watch;
};

static void watch_close(struct lua_watch *watch)
{
    file_watch_close(&watch->watch);
    handle_close(&watch->handle);
}

static void scope_ended(struct scope_member *member)
{
    watch_close(container_of(member, struct lua_watch, handle.member));
}

static const struct scope_kind watch_kind = {.name = "watch", .end = scope_ended};

static void changed(struct file_watch *file_watch, const char *event)
{
    struct lua_watch *watch = container_of(file_watch, struct lua_watch, watch);
    lua_pushstring(handle_push(&watch->handle), event);
    handle_call(&watch->handle, 1);
}

static int watch_file(lua_State *L)
{
    struct crown_error err;
    size_t length;
    const char *path = luaL_checklstring(L, 1, &length);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_argcheck(L, length > 0 && length < PATH_MAX, 1, "not a path");
    struct lua_watch *watch = lua_newuserdata(L, sizeof(*watch));
    *watch = (struct lua_watch){.watch = {.changed = changed}};
    luaL_getmetatable(L, WATCH_TYPE);
    lua_setmetatable(L, -2);
    struct scope *scope = task_scope_here(L);
    if (scope_closed(scope))
        return push_scope_over(L);
    if (file_watch_open(lua_vm_loop(lua_vm_of(L)), &watch->watch, path, &err) < 0)
        return push_error(L, &err);
    handle_open(L, &watch->handle, lua_gettop(L), 2, scope, &watch_kind);
    return 1;
}

/* watch:cancel() */
static int watch_cancel(lua_State *L)
{
    watch_close(luaL_checkudata(L, 1, WATCH_TYPE));
    return 0;
}

int bind_open_watch_file(lua_State *L)
{
    static const luaL_Reg methods[] = {{"cancel", watch_cancel}, {NULL, NULL}};
    bind_make_type(L, WATCH_TYPE, methods, watch_cancel);
    lua_pushcfunction(L, watch_file);
    return 1;
}

/* crown.core.watch_file(path, fn) -> watch, or nil, message: fn(event) runs in a task for each
 * change of the file, also when it is made, replaced or removed later. Events: "created",
 * "modified", "closed", "attrib", "deleted". */
#include <errno.h>
#include <lauxlib.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/container.h"
#include "bind/bind.h"
#include "bind/handle.h"
#include "loop/loop.h"
#include "lua/task.h"

#define WATCH_TYPE "crown.watch"
#define EVENTS                                                                                     \
    (IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE |                \
     IN_MOVED_FROM | IN_DELETE_SELF | IN_ONLYDIR)

/* One inotify descriptor for each watch: nothing to share, nothing to mix up when one is cancelled.
 */
struct file_watch {
    struct handle handle;
    struct loop_watch watch;
    char *name; /* of the file in its directory */
};

static const char *event_name(uint32_t mask)
{
    if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0)
        return "created";
    if ((mask & (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF)) != 0)
        return "deleted";
    if ((mask & IN_CLOSE_WRITE) != 0)
        return "closed";
    return (mask & IN_MODIFY) != 0 ? "modified" : "attrib";
}

static void watch_close(struct file_watch *watch)
{
    if (watch->name == NULL)
        return;
    int fd = watch->watch.fd;
    loop_unwatch(&watch->watch);
    (void)close(fd); /* read only */
    free(watch->name);
    watch->name = NULL;
    handle_close(&watch->handle);
}

static void scope_ended(struct scope_member *member)
{
    watch_close(container_of(member, struct file_watch, handle.member));
}

static const struct scope_kind watch_kind = {.name = "watch", .end = scope_ended};

static void tell(struct file_watch *watch, const char *event)
{
    lua_pushstring(handle_push(&watch->handle), event);
    handle_call(&watch->handle, 1);
}

static void watch_ready(struct loop_watch *loop_watch, unsigned events)
{
    struct file_watch *watch = container_of(loop_watch, struct file_watch, watch);
    char buffer[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    const char *last = NULL;
    (void)events;
    ssize_t size;
    while ((size = read(loop_watch->fd, buffer, sizeof(buffer))) > 0)
        for (char *at = buffer; at < buffer + size;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)at;
            at += sizeof(*event) + event->len;
            bool ours = event->len > 0 ? strcmp(event->name, watch->name) == 0
                                       : (event->mask & (IN_DELETE_SELF | IN_Q_OVERFLOW)) != 0;
            if (!ours)
                continue;
            const char *name = event_name(event->mask);
            if (name != last) /* the same again and again is told once */
                tell(watch, name);
            last = name;
        }
}

static int open_watch(const char *directory, struct crown_error *err)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return error_set_errno(err, errno, "watch %s: raise fs.inotify.max_user_instances",
                               directory);
    if (inotify_add_watch(fd, directory, EVENTS) >= 0)
        return fd;
    int saved = errno;
    (void)close(fd);
    if (saved == ENOSPC)
        return error_set(err, ERROR_SYSTEM, "watch %s: raise fs.inotify.max_user_watches",
                         directory);
    return error_set_errno(err, saved, "watch %s", directory);
}

static int watch_file(lua_State *L)
{
    char path[PATH_MAX], copy[PATH_MAX];
    struct crown_error err;
    size_t length;
    const char *given = luaL_checklstring(L, 1, &length);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_argcheck(L, length > 0 && length < sizeof(path), 1, "not a path");
    memcpy(path, given, length + 1);
    memcpy(copy, given, length + 1);
    struct file_watch *watch = lua_newuserdata(L, sizeof(*watch));
    *watch = (struct file_watch){.name = NULL};
    luaL_getmetatable(L, WATCH_TYPE);
    lua_setmetatable(L, -2);
    struct lua_vm *vm = lua_vm_of(L);
    struct scope *scope = task_scope_here(L);
    if (scope_closed(scope))
        return push_scope_over(L);
    int fd = open_watch(dirname(path), &err);
    if (fd < 0)
        return push_error(L, &err);
    watch->name = strdup(basename(copy));
    if (watch->name == NULL)
        abort(); /* crash-only, as every allocation of a few bytes */
    watch->watch.ready = watch_ready;
    loop_watch(lua_vm_loop(vm), &watch->watch, fd, LOOP_READ);
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

/* crown.core.disk(cause, changes) -> true; or nil, message: changes small files, one after the
 * other up to the first that fails, on a thread of its own: a disk that hangs keeps the task, and
 * nobody else. Each is { "replace", path, text }, { "write", path, text, number }, { "create",
 * path }, { "remove", path } or { "touch", path }: see base/durable.h. `cause`: the disk, as errors
 * name it. A task that is given up leaves a thread behind that may still change something, but
 * begins nothing more. */
#include <lauxlib.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/durable.h"
#include "bind/bind.h"
#include "loop/helper.h"
#include "lua/task.h"

#define DISK_TYPE "crown.disk"

enum change_kind { CHANGE_REPLACE, CHANGE_WRITE, CHANGE_CREATE, CHANGE_REMOVE, CHANGE_TOUCH };
static const char *const kinds[] = {"replace", "write", "create", "remove", "touch", NULL};

struct change {
    enum change_kind kind;
    char *path, *text, *number; /* NULL where there is none */
    size_t size;
};

struct changes {
    struct crown_error error;
    size_t count;
    struct change items[];
};

struct disk {
    struct op op;
    struct helper *helper; /* while it is at it */
    struct crown_error error;
};

static void drop(void *work)
{
    struct changes *changes = work;
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->items[i].path);
        free(changes->items[i].text);
        free(changes->items[i].number);
    }
    free(changes);
}

static int make(const struct change *change, struct crown_error *err)
{
    switch (change->kind) {
    case CHANGE_REPLACE:
        return durable_replace(change->path, change->text, change->size, err);
    case CHANGE_WRITE:
        return durable_write(change->path, change->number, change->text, change->size, err);
    case CHANGE_CREATE:
        return durable_create(change->path, err);
    case CHANGE_REMOVE:
        return durable_remove(change->path, err);
    default:
        return durable_touch(change->path, err);
    }
}

static bool is_wanted(int given_up)
{
    struct pollfd end = {.fd = given_up, .events = POLLIN};
    return poll(&end, 1, 0) == 0;
}

static void run(void *work, int given_up)
{
    struct changes *changes = work;
    for (size_t i = 0; i < changes->count && is_wanted(given_up); i++)
        if (make(&changes->items[i], &changes->error) < 0)
            return;
}

static void done(void *context, void *work)
{
    struct disk *disk = context;
    const struct changes *changes = work;
    disk->helper = NULL;
    disk->error = changes->error;
    drop(work);
    op_complete(&disk->op);
}

static void cancelled(struct op *op)
{
    struct disk *disk = container_of(op, struct disk, op);
    helper_abandon(disk->helper);
    disk->helper = NULL;
}

static int push_done(lua_State *L, struct op *op)
{
    const struct disk *disk = container_of(op, struct disk, op);
    if (disk->error.code != ERROR_NONE)
        return push_error(L, &disk->error);
    lua_pushboolean(L, 1);
    return 1;
}

/* A field of the change on top of the stack, copied; NULL where there is none. */
static char *copy_field(lua_State *L, int field, size_t *size)
{
    size_t length = 0;
    lua_rawgeti(L, -1, field);
    const char *text = lua_tolstring(L, -1, &length);
    char *copy = text != NULL ? malloc(length + 1) : NULL;
    if (copy != NULL)
        memcpy(copy, text, length + 1);
    if (size != NULL)
        *size = length;
    lua_pop(L, 1);
    return copy;
}

static bool is_whole(const struct change *change)
{
    bool has_text = change->kind == CHANGE_REPLACE || change->kind == CHANGE_WRITE;
    return change->path != NULL && (!has_text || change->text != NULL) &&
           (change->kind != CHANGE_WRITE || change->number != NULL);
}

/* The change on top of the stack. @return whether it is one, and memory was there. */
static bool read_change(lua_State *L, struct change *change)
{
    lua_rawgeti(L, -1, 1);
    const char *kind = lua_tostring(L, -1);
    int at = 0;
    while (kind != NULL && kinds[at] != NULL && strcmp(kinds[at], kind) != 0)
        at++;
    lua_pop(L, 1);
    change->kind = (enum change_kind)at;
    change->path = copy_field(L, 2, NULL);
    change->text = copy_field(L, 3, &change->size);
    change->number = copy_field(L, 4, NULL);
    return kind != NULL && kinds[at] != NULL && is_whole(change);
}

static struct changes *read_changes(lua_State *L)
{
    size_t count = lua_objlen(L, 2);
    struct changes *changes = calloc(1, sizeof(*changes) + count * sizeof(struct change));
    if (changes == NULL)
        return NULL;
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++) {
        lua_rawgeti(L, 2, (int)i + 1);
        fine = lua_istable(L, -1) && read_change(L, &changes->items[changes->count++]);
        lua_pop(L, 1);
    }
    if (fine)
        return changes;
    drop(changes);
    return NULL;
}

static int disk_change(lua_State *L)
{
    static const struct helper_kind kind = {"disk", run, done, drop, true};
    const char *cause = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    struct crown_error err;
    struct loop *loop = lua_vm_loop(lua_vm_of(L));
    struct disk *disk = lua_newuserdata(L, sizeof(*disk));
    *disk = (struct disk){.helper = NULL};
    luaL_getmetatable(L, DISK_TYPE);
    lua_setmetatable(L, -2);
    struct changes *changes = read_changes(L);
    if (changes == NULL)
        return luaL_argerror(L, 2, "changes expected, or memory is out");
    op_init(&disk->op, loop, cancelled);
    disk->helper = helper_start(loop, &kind, cause, changes, disk, &err);
    if (disk->helper == NULL) {
        drop(changes);
        return push_error(L, &err);
    }
    task_keep(L, lua_gettop(L));
    return task_wait(L, &disk->op, TIME_NEVER, push_done);
}

static int disk_gc(lua_State *L)
{
    struct disk *disk = luaL_checkudata(L, 1, DISK_TYPE);
    helper_abandon(disk->helper);
    disk->helper = NULL;
    return 0;
}

int bind_open_disk(lua_State *L)
{
    static const luaL_Reg methods[] = {{NULL, NULL}};
    bind_make_type(L, DISK_TYPE, methods, disk_gc);
    lua_pushcfunction(L, disk_change);
    return 1;
}

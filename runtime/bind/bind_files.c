/* crown.core.files: what Lua's io cannot do safely. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "bind/bind.h"
#include "host/leader_file.h"

/* replace(path, text) -> true, or nil, message: atomically, and durably, by a temporary file beside
 * it. */
static int files_replace(lua_State *L)
{
    struct crown_error err;
    size_t size;
    const char *path = luaL_checkstring(L, 1);
    const char *text = luaL_checklstring(L, 2, &size);
    if (durable_replace(path, text, size, &err) < 0)
        return push_error(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

/* list(directory) -> the names in it, or nil, message. */
static int files_list(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    DIR *directory = opendir(path);
    int count = 0;
    if (directory == NULL)
        return push_errno(L, "read the directory", path);
    lua_newtable(L);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        lua_pushstring(L, entry->d_name);
        lua_rawseti(L, -2, ++count);
    }
    (void)closedir(directory); /* read only */
    return 1;
}

/* kind(path) -> "file", "directory", "link" or "other", nothing when there is none; or nil,
 * message. */
static int files_kind(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat found;
    if (lstat(path, &found) < 0)
        return errno == ENOENT ? 0 : push_errno(L, "look at", path);
    lua_pushstring(L, S_ISREG(found.st_mode)   ? "file"
                      : S_ISDIR(found.st_mode) ? "directory"
                      : S_ISLNK(found.st_mode) ? "link"
                                               : "other");
    return 1;
}

/* target(path) -> what a symbolic link names; nothing where it is none. */
static int files_target(lua_State *L)
{
    char target[PATH_MAX];
    ssize_t size = readlink(luaL_checkstring(L, 1), target, sizeof(target));
    if (size < 0)
        return 0;
    lua_pushlstring(L, target, (size_t)size);
    return 1;
}

/* readable(path) -> true where it is a plain file that this user may read; or nil, message. */
static int files_readable(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat found = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe has no writer */
    if (fd < 0)
        return push_errno(L, "open", path);
    bool plain = fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
    (void)close(fd); /* read only */
    lua_pushboolean(L, 1);
    if (plain)
        return 1;
    lua_pushnil(L);
    lua_pushfstring(L, "%s is no plain file", path);
    return 2;
}

/* executable(path) -> whether it is a file that this user may execute. */
static int files_executable(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat found;
    lua_pushboolean(L,
                    stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0);
    return 1;
}

/* fresh(path, max_age) -> whether a file of `crown-lua file` is there and has not expired. */
static int files_fresh(lua_State *L)
{
    enum freshness fresh = fresh_file(luaL_checkstring(L, 1), luaL_checknumber(L, 2));
    lua_pushboolean(L, fresh == FILE_FRESH);
    if (fresh != FILE_FOREIGN)
        return 1;
    lua_pushliteral(L, FILE_IS_FOREIGN);
    return 2;
}

/* is_open(descriptor) -> whether this process has it. */
static int files_is_open(lua_State *L)
{
    lua_pushboolean(L, fcntl(luaL_checkint(L, 1), F_GETFD) >= 0);
    return 1;
}

static const luaL_Reg functions[] = {
    {"replace", files_replace}, {"list", files_list},         {"kind", files_kind},
    {"fresh", files_fresh},     {"readable", files_readable}, {"executable", files_executable},
    {"is_open", files_is_open}, {"target", files_target},     {NULL, NULL},
};

int bind_open_files(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

/* crown.core.lockfile: a write lock on a file, held by an open file description (fcntl(2),
 * F_OFD_SETLK): it belongs to whoever has the descriptor open, so that a keeper, a warden and a
 * child that inherit it hold it as well. */
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/durable.h"
#include "bind/bind.h"
#include "bind/opened_locks.h"

#define LOCKFILE_TYPE "crown.lockfile"
#define SIZE_MAX_BYTES 65536
#define WRITTEN_WITHIN 2 /* seconds: a slow disk takes its time */
#define TIME_SIZE 48
#define MOUNT_NUMBER_UNIQUE 0x4000U /* STATX_MNT_ID_UNIQUE, which Debian's headers lack */

#ifndef CIFS_MAGIC_NUMBER
#define CIFS_MAGIC_NUMBER 0xFF534D42
#endif

static int *check_lock(lua_State *L)
{
    int *fd = luaL_checkudata(L, 1, LOCKFILE_TYPE);
    if (*fd < 0)
        luaL_error(L, "this lock file is closed");
    return fd;
}

/* open(path) -> lock file; or nil, message. Makes none: a disk that hangs would keep us
 * (bind_disk.c). Never follows a symbolic link, nor waits for a pipe's other end. */
static int lockfile_open(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int *fd = lua_newuserdata(L, sizeof(*fd));
    *fd = -1;
    luaL_getmetatable(L, LOCKFILE_TYPE);
    lua_setmetatable(L, -2);
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0 && errno != EISDIR && errno != ENXIO &&
        errno != ELOOP) /* a directory, socket, link */
        return push_errno(L, "open the lock file", path);
    struct stat found;
    if (*fd >= 0 && fstat(*fd, &found) == 0 && S_ISREG(found.st_mode))
        return 1;
    lua_pushnil(L);
    lua_pushfstring(L, "%s is no plain file: move it away", path);
    lua_pushliteral(L, "usage");
    return 3;
}

static int set_lock(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

/* lock:try() -> true, false where somebody else has it, or nil, message. */
static int lockfile_try(lua_State *L)
{
    int *fd = check_lock(L);
    bool taken = set_lock(*fd, F_WRLCK) == 0;
    if (!taken && errno != EAGAIN && errno != EACCES)
        return push_errno(L, "lock", "the lock file");
    lua_pushboolean(L, taken);
    return 1;
}

static bool held_elsewhere(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* lock:taken() -> whether somebody else has it, also where the path names another file by now. */
static int lockfile_taken(lua_State *L)
{
    lua_pushboolean(L, held_elsewhere(*check_lock(L)));
    return 1;
}

static int push_number(lua_State *L, int fd)
{
    char text[DURABLE_NUMBER_SIZE];
    struct stat info;
    if (fstat(fd, &info) < 0)
        return push_errno(L, "look at", "the lock file");
    durable_number(&info, text);
    lua_pushstring(L, text);
    return 1;
}

/* lock:name() -> the path under which the file was opened, without links, and its number; or nil,
 * message. */
static int lockfile_name(lua_State *L)
{
    char link[64], path[PATH_MAX];
    int *fd = check_lock(L);
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", *fd);
    ssize_t size = readlink(link, path, sizeof(path));
    if (size < 0)
        return push_errno(L, "look at", "the lock file");
    lua_pushlstring(L, path, (size_t)size);
    return 1 + push_number(L, *fd);
}

/* lock:release(): for everybody who has the descriptor. */
static int lockfile_release(lua_State *L)
{
    if (set_lock(*check_lock(L), F_UNLCK) < 0)
        return push_errno(L, "unlock", "the lock file");
    lua_pushboolean(L, 1);
    return 1;
}

/* lock:same(path) -> whether the path still names this very file. */
static int lockfile_same(lua_State *L)
{
    struct stat ours, theirs;
    int *fd = check_lock(L);
    const char *path = luaL_checkstring(L, 2);
    lua_pushboolean(L, fstat(*fd, &ours) == 0 && lstat(path, &theirs) == 0 &&
                           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino);
    return 1;
}

/* What is written to a file sets both. To move it sets one, and no user can set that one back.
 * touch(1) writes nothing and sets both, too. */
static bool was_written_at(const struct stat *info, lua_Number time)
{
    lua_Number after = (lua_Number)info->st_mtim.tv_sec - time;
    return info->st_mtim.tv_sec == info->st_ctim.tv_sec &&
           info->st_mtim.tv_nsec == info->st_ctim.tv_nsec && after >= -1 && after <= WRITTEN_WITHIN;
}

static bool changed_before(const struct stat *one, const struct stat *other)
{
    return one->st_ctim.tv_sec != other->st_ctim.tv_sec
               ? one->st_ctim.tv_sec < other->st_ctim.tv_sec
               : one->st_ctim.tv_nsec < other->st_ctim.tv_nsec;
}

static bool look_above(const char *directory, struct stat *above, char time[TIME_SIZE])
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/..", directory) >= (int)sizeof(path) ||
        stat(path, above) < 0)
        return false;
    (void)snprintf(time, TIME_SIZE, "%lld.%09ld", (long long)above->st_ctim.tv_sec,
                   above->st_ctim.tv_nsec);
    return true;
}

/* changed_above(directory) -> when something was made, moved or removed beside it, or else changed
 * there; nothing where nobody can say. No user can set that back. */
static int lockfile_changed_above(lua_State *L)
{
    char text[TIME_SIZE];
    struct stat above;
    if (!look_above(luaL_checkstring(L, 1), &above, text))
        return 0;
    lua_pushstring(L, text);
    return 1;
}

/* lock:stayed(directory, time, above) -> whether neither the file nor its directory has been moved
 * since the file was written to, at that time, when changed_above was `above`. To be the same says
 * more than to be earlier, as clocks are set back; but a file system may count in seconds. False
 * also where nobody can say. */
static int lockfile_stayed(lua_State *L)
{
    struct stat file, above;
    char time[TIME_SIZE];
    int *fd = check_lock(L);
    bool seen = look_above(luaL_checkstring(L, 2), &above, time) && fstat(*fd, &file) == 0;
    lua_pushboolean(L, seen && was_written_at(&file, luaL_checknumber(L, 3)) &&
                           strcmp(time, luaL_checkstring(L, 4)) == 0 &&
                           changed_before(&above, &file));
    return 1;
}

/* lock:mount() -> which mount the file is on, as the kernel numbers them: never twice since
 * Linux 6.8; or nil where it does not say. */
static int lockfile_mount(lua_State *L)
{
    struct statx info;
    char text[32];
    int *fd = check_lock(L);
    if (statx(*fd, "", AT_EMPTY_PATH, STATX_MNT_ID | MOUNT_NUMBER_UNIQUE, &info) < 0 ||
        (info.stx_mask & (STATX_MNT_ID | MOUNT_NUMBER_UNIQUE)) == 0)
        return 0;
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)info.stx_mnt_id);
    lua_pushstring(L, text);
    return 1;
}

static int push_text(lua_State *L, int fd)
{
    char text[SIZE_MAX_BYTES];
    ssize_t size = pread(fd, text, sizeof(text), 0);
    if (size < 0)
        return push_errno(L, "read", "the lock file");
    lua_pushlstring(L, text, (size_t)size);
    return 1;
}

/* lock:read() -> what the file holds. */
static int lockfile_read(lua_State *L)
{
    return push_text(L, *check_lock(L));
}

/* lock:descriptor() -> the number, for a grant's `hold`. */
static int lockfile_descriptor(lua_State *L)
{
    lua_pushinteger(L, *check_lock(L));
    return 1;
}

static int lockfile_close(lua_State *L)
{
    int *fd = luaL_checkudata(L, 1, LOCKFILE_TYPE);
    if (*fd >= 0)
        (void)close(*fd); /* what was written is synchronised already */
    *fd = -1;
    return 0;
}

static const char *network_name(long magic)
{
    switch ((unsigned long)magic) {
    case NFS_SUPER_MAGIC:
        return "NFS";
    case SMB_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CIFS_MAGIC_NUMBER:
        return "SMB";
    case CEPH_SUPER_MAGIC:
        return "Ceph";
    case AFS_SUPER_MAGIC:
        return "AFS";
    case V9FS_MAGIC:
        return "9P";
    case FUSE_SUPER_MAGIC:
        return "FUSE";
    default:
        return NULL;
    }
}

static int refuse(lua_State *L, const char *path, const char *why)
{
    struct crown_error err;
    (void)error_set(&err, ERROR_USAGE, "directory %s %s", path, why);
    return push_error(L, &err);
}

/* Makes a directory, and those above it that are not there either, for this user alone. */
static int make_directory(const char *path)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT || slash == NULL || slash == path ||
        snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path) >= (int)sizeof(parent))
        return -1;
    return make_directory(parent) < 0 || (mkdir(path, 0700) < 0 && errno != EEXIST) ? -1 : 0;
}

/* directory(path [, "read"]) -> true: it is there (made, with mode 0700, and so are its parents)
 * and fit for locks, or for reading them; or nil, message. */
static int lockfile_directory(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    bool reads = lua_toboolean(L, 2);
    struct stat info;
    struct statfs system;
    if (lstat(path, &info) < 0 && make_directory(path) < 0)
        return push_errno(L, "make the directory", path);
    if (lstat(path, &info) < 0 || statfs(path, &system) < 0)
        return push_errno(L, "look at the directory", path);
    const char *network = network_name((long)system.f_type);
    if (S_ISLNK(info.st_mode))
        return refuse(L, path, "is a symbolic link: name the directory itself");
    if (!S_ISDIR(info.st_mode))
        return refuse(L, path, "is not a directory");
    if (network != NULL) {
        lua_pushnil(L);
        lua_pushfstring(L,
                        "directory %s is on a network file system (%s), where locks cannot be "
                        "trusted: use a local one, or a store such as Postgres",
                        path, network);
        return 2;
    }
    if (info.st_uid != geteuid() && info.st_uid != 0)
        return refuse(L, path,
                      "belongs to another user, who could take the lock away: name one of your "
                      "own or of root's");
    if ((info.st_mode & S_IWOTH) != 0)
        return refuse(L, path,
                      "may be written by everybody: anybody could take the lock, or take it away "
                      "(chmod o-w)");
    if (access(path, (reads ? R_OK : W_OK) | X_OK) < 0)
        return push_errno(L, reads ? "read the directory" : "write to the directory", path);
    lua_pushboolean(L, 1);
    return 1;
}

static const luaL_Reg methods[] = {
    {"try", lockfile_try},
    {"release", lockfile_release},
    {"same", lockfile_same},
    {"stayed", lockfile_stayed},
    {"mount", lockfile_mount},
    {"read", lockfile_read},
    {"close", lockfile_close},
    {"descriptor", lockfile_descriptor},
    {"taken", lockfile_taken},
    {"name", lockfile_name},
    {NULL, NULL},
};

/* look(path of a descriptor) -> whether the file there is locked, what it holds, and its number; or
 * nil, message where the process is gone. */
static int lockfile_look(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return push_errno(L, "open", path);
    lua_pushboolean(L, held_elsewhere(fd));
    int values = push_text(L, fd) + push_number(L, fd);
    (void)close(fd); /* read only */
    return 1 + values;
}

/* held(path) -> whether somebody holds the lock; asking never takes it. */
static int lockfile_held(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    /* Closing it wakes nobody. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        return push_errno(L, "open", path);
    bool held = fd >= 0 && held_elsewhere(fd);
    if (fd >= 0)
        (void)close(fd); /* nothing was written */
    lua_pushboolean(L, held);
    return 1;
}

static const luaL_Reg functions[] = {
    {"changed_above", lockfile_changed_above},
    {"held", lockfile_held},
    {"open", lockfile_open},
    {"directory", lockfile_directory},
    {"opened", push_opened_locks},
    {"look", lockfile_look},
    {NULL, NULL},
};

int bind_open_lockfile(lua_State *L)
{
    bind_make_type(L, LOCKFILE_TYPE, methods, lockfile_close);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

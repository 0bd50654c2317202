/* crown.core.mark: who leads by a path says so by an abstract UNIX socket, whose name is made from
 * the path. So it stands also where the directory is moved or hidden from under the leader. Whoever
 * has the descriptor holds the mark, as a lock.
 *
 * Everybody can bind the name, so there are several places for it. A mark is taken in the first
 * that is free, and only then are the others looked at: of two who come at once, one at least sees
 * the other. A mark counts where who made it may lead in the directory. */
#include <errno.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hash.h"
#include "bind/bind.h"

#define MARK_TYPE "crown.mark"
#define RIVAL_TYPE "crown.mark.rival"
#define PLACES 8     /* of one path's mark */
#define WAITING 4096 /* who looks waits there; the kernel allows as many by default */
#define GROUPS_MAX 256

struct mark {
    int fd;
};

struct rival {
    int fd; /* a connection that nobody takes: the kernel ends it with the mark */
    pid_t pid;
};

/* Where a directory is, and who may lead in it. */
struct place {
    struct stat info;
    uint64_t key;
};

/* Containers that share a network have roots of their own. */
static int find_place(struct place *place, const char *path, const char *directory)
{
    char text[PATH_MAX + 64];
    struct stat root;
    if (stat("/", &root) < 0 || stat(directory, &place->info) < 0)
        return -1;
    (void)snprintf(text, sizeof(text), "%ju:%ju:%s", (uintmax_t)root.st_dev, (uintmax_t)root.st_ino,
                   path);
    place->key = hash_text(text);
    return 0;
}

static socklen_t name_of(const struct place *place, int number, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
                        "crown-lua/%016" PRIx64 "/%d", place->key, number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* @return the number of the mark's place, PLACES where none is free; -1 with errno. */
static int bind_somewhere(int fd, const struct place *place)
{
    struct sockaddr_un name;
    for (int number = 0; number < PLACES; number++) {
        socklen_t size = name_of(place, number, &name);
        if (bind(fd, (const struct sockaddr *)&name, size) == 0)
            return listen(fd, WAITING) == 0 ? number : -1;
        if (errno != EADDRINUSE)
            return -1;
    }
    return PLACES;
}

static bool is_in_group(int fd, gid_t own, gid_t wanted)
{
    gid_t groups[GROUPS_MAX];
    socklen_t size = sizeof(groups);
    if (own == wanted)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
        return errno == ERANGE; /* more than anybody has: nobody can say */
    for (size_t i = 0; i < size / sizeof(groups[0]); i++)
        if (groups[i] == wanted)
            return true;
    return false;
}

/* Who may not could keep all others from leading by a mark. Who may could do so by the lock. */
static bool may_lead(int fd, const struct ucred *peer, const struct stat *directory)
{
    return peer->uid == geteuid() || peer->uid == 0 || peer->uid == directory->st_uid ||
           ((directory->st_mode & S_IWGRP) != 0 && is_in_group(fd, peer->gid, directory->st_gid));
}

static bool counts(int fd, const struct place *place, pid_t *pid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return true;
    *pid = peer.pid;
    return may_lead(fd, &peer, &place->info);
}

/* What others have in the places of a mark. */
struct found {
    struct rival rival; /* fd -1: nobody */
    char doubt[160];    /* "": none */
};

static void doubt(struct found *found, const char *what)
{
    (void)snprintf(found->doubt, sizeof(found->doubt), "%s: %s", what, strerror(errno));
}

/* A name that nobody has, or that was let go of, refuses: so does one that is bound and not yet
 * listened to. Who has that one looks at ours afterwards.
 * @return whether the socket is of use no more: it is connected. */
static bool look(struct found *found, const struct place *place, int number, int fd)
{
    struct sockaddr_un name;
    socklen_t size = name_of(place, number, &name);
    pid_t pid = 0;
    if (connect(fd, (const struct sockaddr *)&name, size) < 0) {
        if (errno != ECONNREFUSED)
            doubt(found, "look at a socket");
        return false;
    }
    if (counts(fd, place, &pid))
        found->rival = (struct rival){.fd = fd, .pid = pid};
    else
        (void)close(fd); /* nothing was sent */
    return true;
}

static void look_at_others(struct found *found, const struct place *place, int own)
{
    int fd = -1;
    for (int number = 0; number < PLACES && found->rival.fd < 0; number++) {
        if (number == own)
            continue;
        if (fd < 0)
            fd = new_socket();
        if (fd < 0)
            doubt(found, "make a socket");
        else if (look(found, place, number, fd))
            fd = -1;
    }
    if (fd >= 0)
        (void)close(fd); /* nothing was sent */
}

static void drop(struct mark *mark)
{
    if (mark->fd >= 0)
        (void)close(mark->fd); /* nothing is written there */
    mark->fd = -1;
}

static void take(struct mark *mark, const char *path, const char *directory, struct found *found)
{
    struct place place;
    if (find_place(&place, path, directory) < 0) {
        doubt(found, directory);
        return;
    }
    mark->fd = new_socket();
    int own = mark->fd >= 0 ? bind_somewhere(mark->fd, &place) : -1;
    if (own < 0)
        doubt(found, "make a mark");
    else if (own == PLACES)
        (void)snprintf(found->doubt, sizeof(found->doubt),
                       "others have all sockets @crown-lua/%016" PRIx64 "/*", place.key);
    if (own < 0 || own == PLACES)
        drop(mark);
    look_at_others(found, &place, own);
}

static int push_found(lua_State *L, const struct found *found)
{
    if (found->rival.fd >= 0) {
        struct rival *rival = lua_newuserdata(L, sizeof(*rival));
        *rival = found->rival;
        luaL_getmetatable(L, RIVAL_TYPE);
        lua_setmetatable(L, -2);
        return 1;
    }
    if (found->doubt[0] == '\0')
        return 0;
    lua_pushnil(L);
    lua_pushstring(L, found->doubt);
    return 2;
}

/* take(path, its directory) -> a mark, or false where there is none to be had. Then a rival: who
 * also has a mark of that path, and may lead. Or nil and a message where it cannot be told whether
 * there is one. */
static int mark_take(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const char *directory = luaL_checkstring(L, 2);
    struct found found = {.rival = {.fd = -1}};
    struct mark *mark = lua_newuserdata(L, sizeof(*mark));
    mark->fd = -1;
    luaL_getmetatable(L, MARK_TYPE);
    lua_setmetatable(L, -2);
    take(mark, path, directory, &found);
    if (mark->fd < 0)
        lua_pushboolean(L, 0);
    return 1 + push_found(L, &found);
}

static struct mark *check_mark(lua_State *L)
{
    return luaL_checkudata(L, 1, MARK_TYPE);
}

/* mark:release(): for everybody who has the descriptor; whoever waits there hears of it. */
static int mark_release(lua_State *L)
{
    struct mark *mark = check_mark(L);
    int waiting;
    if (mark->fd >= 0 && shutdown(mark->fd, SHUT_RDWR) == 0)
        while ((waiting = accept4(mark->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
            (void)close(waiting); /* nothing was sent */
    drop(mark);
    return 0;
}

/* mark:descriptor() -> the number, for a grant's `hold`; nothing where it was released. */
static int mark_descriptor(lua_State *L)
{
    const struct mark *mark = check_mark(L);
    if (mark->fd < 0)
        return 0;
    lua_pushinteger(L, mark->fd);
    return 1;
}

static int mark_gc(lua_State *L)
{
    drop(check_mark(L));
    return 0;
}

static struct rival *check_rival(lua_State *L)
{
    return luaL_checkudata(L, 1, RIVAL_TYPE);
}

/* rival:stands() -> whether it has its mark still. */
static int rival_stands(lua_State *L)
{
    struct pollfd end = {.fd = check_rival(L)->fd, .events = POLLIN};
    lua_pushboolean(L, poll(&end, 1, 0) == 0);
    return 1;
}

/* rival:pid() -> the process that made the mark; 0 where it is in another PID namespace. */
static int rival_pid(lua_State *L)
{
    lua_pushinteger(L, check_rival(L)->pid);
    return 1;
}

static int rival_gc(lua_State *L)
{
    (void)close(check_rival(L)->fd); /* nothing was sent */
    return 0;
}

int bind_open_mark(lua_State *L)
{
    static const luaL_Reg marks[] = {
        {"release", mark_release}, {"descriptor", mark_descriptor}, {NULL, NULL}};
    static const luaL_Reg rivals[] = {{"stands", rival_stands}, {"pid", rival_pid}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"take", mark_take}, {NULL, NULL}};
    bind_make_type(L, MARK_TYPE, marks, mark_gc);
    bind_make_type(L, RIVAL_TYPE, rivals, rival_gc);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

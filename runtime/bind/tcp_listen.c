#include "bind/tcp_listen.h"

#include <lauxlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "bind/handle.h"
#include "bind/tcp_connection.h"
#include "host/host.h"
#include "lua/task.h"
#include "net/listen.h"

#define LISTENER_TYPE "crown.listener"

struct tcp_listener {
    struct handle handle;
    struct listener *listener; /* NULL once closed */
    struct tls_context *tls;
    bool background; /* the program may end while it listens; it is nobody's */
};

static struct lifetime *lifetime_of(struct lua_vm *vm)
{
    struct host *host = lua_vm_owner(vm);
    return &host->lifetime;
}

static void listener_release(struct tcp_listener *listener)
{
    if (listener->listener == NULL)
        return;
    listener_close(listener->listener);
    listener->listener = NULL;
    tls_context_free(listener->tls);
    if (!listener->background)
        lifetime_release(lifetime_of(listener->handle.vm));
    handle_close(&listener->handle);
}

static void scope_ended(struct scope_member *member)
{
    listener_release(container_of(member, struct tcp_listener, handle.member));
}

static const struct scope_kind listener_kind = {.name = "listener", .end = scope_ended};

static void connection_accepted(void *context, int fd)
{
    struct tcp_listener *listener = context;
    struct crown_error err;
    struct stream *stream = stream_adopt(lua_vm_loop(listener->handle.vm), fd, listener->tls, &err);
    if (stream == NULL)
        return;
    tcp_push_connection(handle_push(&listener->handle), stream);
    handle_call(&listener->handle, 1);
}

/* tls and background, of the options at index 4. @return false with `err`. */
static bool read_listen_options(lua_State *L, struct tcp_listener *listener,
                                struct crown_error *err)
{
    if (!lua_istable(L, 4))
        return true;
    listener->background = flag_field(L, 4, "background");
    lua_getfield(L, 4, "tls");
    if (lua_istable(L, -1))
        listener->tls = tcp_read_tls(L, lua_gettop(L), true, err);
    bool fine = !lua_istable(L, -1) || listener->tls != NULL;
    lua_pop(L, 1);
    return fine;
}

int tcp_listen(lua_State *L)
{
    struct crown_error err = {0};
    const char *host = tcp_check_host(L, 1);
    int port = lua_isnoneornil(L, 2) ? 0 : tcp_check_port(L, 2, 0);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    lua_settop(L, 4);
    struct lua_vm *vm = lua_vm_of(L);
    struct tcp_listener *listener = lua_newuserdata(L, sizeof(*listener));
    *listener = (struct tcp_listener){.listener = NULL};
    luaL_getmetatable(L, LISTENER_TYPE);
    lua_setmetatable(L, -2);
    if (!read_listen_options(L, listener, &err))
        return push_error(L, &err);
    struct scope *scope = listener->background ? task_vm_scope(vm) : task_scope_here(L);
    if (scope_closed(scope)) {
        tls_context_free(listener->tls);
        return push_scope_over(L);
    }
    listener->listener =
        listener_open(lua_vm_loop(vm), host, (unsigned)port, connection_accepted, listener, &err);
    if (listener->listener == NULL) {
        tls_context_free(listener->tls);
        return push_error(L, &err);
    }
    handle_open(L, &listener->handle, 5, 3, scope, &listener_kind);
    if (!listener->background)
        lifetime_hold(lifetime_of(vm));
    return 1;
}

static int listener_port_of(lua_State *L)
{
    struct tcp_listener *listener = luaL_checkudata(L, 1, LISTENER_TYPE);
    if (listener->listener == NULL)
        return tcp_push_closed(L);
    lua_pushinteger(L, (lua_Integer)listener_port(listener->listener));
    return 1;
}

/* listener:pause(seconds): who connects meanwhile waits in the kernel. */
static int listener_pause_of(lua_State *L)
{
    struct tcp_listener *listener = luaL_checkudata(L, 1, LISTENER_TYPE);
    int64_t ns = clock_ns_from_seconds(luaL_checknumber(L, 2));
    if (listener->listener != NULL)
        listener_pause(listener->listener, ns);
    return 0;
}

static int listener_close_of(lua_State *L)
{
    listener_release(luaL_checkudata(L, 1, LISTENER_TYPE));
    return 0;
}

static const luaL_Reg listener_methods[] = {
    {"port", listener_port_of},
    {"pause", listener_pause_of},
    {"close", listener_close_of},
    {NULL, NULL},
};

void tcp_make_listener_type(lua_State *L)
{
    bind_make_type(L, LISTENER_TYPE, listener_methods, listener_close_of);
}

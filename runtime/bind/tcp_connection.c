#include "bind/tcp_connection.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "lua/task.h"

#define CONNECTION_TYPE "crown.connection"
#define TIMEOUT_DEFAULT_NS (5 * NS_PER_S)

struct connection {
    struct stream *stream; /* NULL once closed */
    struct tls_context *tls;
    int64_t timeout_ns;
    int64_t silence_ns; /* 0: as the stream has it */
    bool keep_newline;  /* of the read under way: "*L" */
    bool line;
};

static int64_t now_ns(lua_State *L)
{
    return loop_now(lua_vm_loop(lua_vm_of(L)));
}

static struct connection *check_connection(lua_State *L)
{
    struct connection *connection = luaL_checkudata(L, 1, CONNECTION_TYPE);
    return connection;
}

int tcp_push_closed(lua_State *L)
{
    struct crown_error err;
    (void)error_set(&err, ERROR_CLOSED, "closed");
    return push_error(L, &err);
}

struct tls_context *tcp_read_tls(lua_State *L, int index, bool server, struct crown_error *err)
{
    struct tls_options options = {.server = server};
    if (lua_istable(L, index)) {
        options.ca = text_field(L, index, "ca");
        options.cert = text_field(L, index, "cert");
        options.key = text_field(L, index, "key");
        options.server_name = text_field(L, index, "server_name");
        lua_getfield(L, index, "insecure");
        options.insecure = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    return tls_context_new(&options, err);
}

int tcp_fits_tls(lua_State *L)
{
    struct crown_error err;
    luaL_checktype(L, 1, LUA_TTABLE);
    struct tls_context *context = tcp_read_tls(L, 1, true, &err);
    if (context == NULL)
        return push_error(L, &err);
    tls_context_free(context);
    lua_pushboolean(L, 1);
    return 1;
}

static struct connection *push_connection(lua_State *L)
{
    struct connection *connection = lua_newuserdata(L, sizeof(*connection));
    *connection = (struct connection){.timeout_ns = TIMEOUT_DEFAULT_NS};
    luaL_getmetatable(L, CONNECTION_TYPE);
    lua_setmetatable(L, -2);
    return connection;
}

static void release(struct connection *connection)
{
    stream_free(connection->stream);
    tls_context_free(connection->tls);
    connection->stream = NULL;
    connection->tls = NULL;
}

/* The wait kept the connection alive; what it is handed is a userdata with the same
 * content, since a resumed C function's own arguments are out of reach. */
static int push_opened(lua_State *L, struct op *op)
{
    struct connection *waiting = op->context;
    if (!stream_is_open(waiting->stream)) {
        struct crown_error err = *stream_error(waiting->stream);
        release(waiting);
        return push_error(L, &err);
    }
    struct connection *connection = push_connection(L);
    if (waiting->silence_ns > 0)
        stream_watch_silence(waiting->stream, waiting->silence_ns);
    *connection = *waiting;
    waiting->stream = NULL;
    waiting->tls = NULL;
    return 1;
}

/* A number that does not fit would be another port; a text is cut at a NUL. */
int tcp_check_port(lua_State *L, int index, int least)
{
    lua_Number port = luaL_checknumber(L, index);
    luaL_argcheck(L, port >= least && port <= 65535 && port == (int)port, index,
                  "a port expected: 1 to 65535");
    return (int)port;
}

const char *tcp_check_host(lua_State *L, int index)
{
    size_t size;
    const char *host = luaL_checklstring(L, index, &size);
    luaL_argcheck(L, strlen(host) == size, index, "a host with a NUL in it");
    return host;
}

int tcp_connect(lua_State *L)
{
    struct crown_error err = {0};
    const char *host = tcp_check_host(L, 1);
    char port[16] = "0";
    if (strncmp(host, "unix:", 5) != 0)
        (void)snprintf(port, sizeof(port), "%d", tcp_check_port(L, 2, 1));
    lua_settop(L, 3);
    bool options = lua_istable(L, 3);
    if (!options && !lua_isnil(L, 3))
        return luaL_argerror(L, 3, "a table of options expected");
    struct connection *connection = push_connection(L);
    if (options) {
        lua_getfield(L, 3, "timeout");
        if (lua_isnumber(L, -1))
            connection->timeout_ns = clock_ns_from_seconds(lua_tonumber(L, -1));
        connection->silence_ns = clock_ns_from_seconds(number_field(L, 3, "silence", 0));
        lua_getfield(L, 3, "tls");
        if (lua_toboolean(L, -1)) {
            connection->tls = tcp_read_tls(L, lua_gettop(L), false, &err);
            if (connection->tls == NULL)
                return push_error(L, &err);
        }
        lua_settop(L, 4);
    }
    connection->stream =
        stream_connect(lua_vm_loop(lua_vm_of(L)), host, port, connection->tls, &err);
    if (connection->stream == NULL)
        return push_error(L, &err);
    lua_settop(L, 4);
    if (options) {
        lua_getfield(L, 3, "on_opening");
        if (lua_isfunction(L, -1)) {
            lua_pushvalue(L, 4);
            lua_call(L, 1, 0);
        }
        lua_settop(L, 4);
    }
    struct op *op = stream_open_op(connection->stream);
    op->context = connection;
    task_keep(L, 4);
    return task_wait(L, op, clock_add_ns(now_ns(L), connection->timeout_ns), push_opened);
}

static int push_read(lua_State *L, struct op *op)
{
    struct connection *connection = op->context;
    struct crown_error err;
    const char *bytes;
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    ptrdiff_t size = stream_take(connection->stream, &bytes, &err);
    if (size < 0)
        return push_error(L, &err);
    if (connection->line && !connection->keep_newline && size > 0 && bytes[size - 1] == '\n')
        size--;
    lua_pushlstring(L, bytes, (size_t)size);
    return 1;
}

/* connection:read("*l" | "*L" | "*a" | "*s" | n [, timeout]): as in Lua's io; "*s": some, as soon
 * as there are any. */
static int connection_read(lua_State *L)
{
    struct connection *connection = check_connection(L);
    struct crown_error err;
    enum stream_read kind = STREAM_LINE;
    size_t size = 0;
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    if (lua_type(L, 2) == LUA_TNUMBER) {
        lua_Number wanted = lua_tonumber(L, 2);
        luaL_argcheck(L, wanted >= 0 && wanted <= STREAM_READ_MAX, 2, "0 to 1048576 bytes");
        kind = STREAM_EXACT;
        size = (size_t)wanted;
    } else {
        const char *format = luaL_optstring(L, 2, "*l");
        format += *format == '*';
        luaL_argcheck(L, strchr("lLas", *format) != NULL && *format != '\0', 2, "invalid format");
        kind = *format == 'a' ? STREAM_ALL : *format == 's' ? STREAM_SOME : STREAM_LINE;
        connection->keep_newline = *format == 'L';
    }
    connection->line = kind == STREAM_LINE;
    int64_t timeout_ns = lua_isnoneornil(L, 3) ? connection->timeout_ns
                                               : clock_ns_from_seconds(luaL_checknumber(L, 3));
    if (stream_read(connection->stream, kind, size, &err) < 0)
        return luaL_error(L, "%s", err.message);
    struct op *op = stream_read_op(connection->stream);
    op->context = connection;
    task_keep(L, 1);
    return task_wait(L, op, clock_add_ns(now_ns(L), timeout_ns), push_read);
}

static int push_written(lua_State *L, struct op *op)
{
    struct connection *connection = op->context;
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    stream_write_ended(connection->stream);
    const struct crown_error *err = stream_error(connection->stream);
    if (err->code != ERROR_NONE)
        return push_error(L, err);
    lua_pushboolean(L, 1);
    return 1;
}

/* connection:write(text) -> true, or nil, message, code. */
static int connection_write(lua_State *L)
{
    struct connection *connection = check_connection(L);
    struct crown_error err;
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    if (stream_write(connection->stream, bytes, size, &err) < 0) {
        if (err.code == ERROR_USAGE)
            return luaL_error(L, "%s", err.message);
        return push_error(L, &err);
    }
    struct op *op = stream_write_op(connection->stream);
    op->context = connection;
    task_keep(L, 1);
    return task_wait(L, op, clock_add_ns(now_ns(L), connection->timeout_ns), push_written);
}

static int push_started(lua_State *L, struct op *op)
{
    struct connection *connection = op->context;
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    if (!stream_is_open(connection->stream))
        return push_error(L, stream_error(connection->stream));
    lua_pushboolean(L, 1);
    return 1;
}

/* connection:starttls([options]) -> true, or nil, message, code. */
static int connection_starttls(lua_State *L)
{
    struct connection *connection = check_connection(L);
    struct crown_error err = {0};
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    if (connection->tls != NULL)
        return luaL_error(L, "this connection has TLS already");
    connection->tls = tcp_read_tls(L, 2, false, &err);
    if (connection->tls == NULL || stream_start_tls(connection->stream, connection->tls, &err) < 0)
        return push_error(L, &err);
    struct op *op = stream_open_op(connection->stream);
    op->context = connection;
    task_keep(L, 1);
    return task_wait(L, op, clock_add_ns(now_ns(L), connection->timeout_ns), push_started);
}

static int connection_peer(lua_State *L)
{
    struct connection *connection = check_connection(L);
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    lua_pushstring(L, stream_peer(connection->stream));
    return 1;
}

/* connection:uid() -> the user at the other end of a UNIX socket; or nil, message, code. */
static int connection_uid(lua_State *L)
{
    struct connection *connection = check_connection(L);
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (connection->stream == NULL)
        return tcp_push_closed(L);
    if (getsockopt(stream_socket(connection->stream), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return push_errno(L, "ask who is at", stream_peer(connection->stream));
    lua_pushnumber(L, peer.uid);
    return 1;
}

/* connection:step() -> how far it is, while tcp.connect opens it; nil once it is the caller's. */
static int connection_step(lua_State *L)
{
    const struct connection *connection = check_connection(L);
    lua_pushstring(L, connection->stream != NULL ? stream_step(connection->stream) : NULL);
    return 1;
}

static int connection_set_timeout(lua_State *L)
{
    check_connection(L)->timeout_ns = clock_ns_from_seconds(luaL_checknumber(L, 2));
    return 0;
}

static int connection_shutdown(lua_State *L)
{
    struct connection *connection = check_connection(L);
    if (connection->stream != NULL)
        stream_shutdown(connection->stream);
    return 0;
}

/* connection:has_come() -> whether something is there that was not read yet. */
static int connection_has_come(lua_State *L)
{
    struct connection *connection = check_connection(L);
    lua_pushboolean(L, connection->stream != NULL && stream_has_come(connection->stream));
    return 1;
}

/* Tasks that wait get nil, "closed"; the memory goes when Lua lets go of the connection. */
static int connection_close(lua_State *L)
{
    struct connection *connection = check_connection(L);
    if (connection->stream != NULL)
        stream_close(connection->stream);
    return 0;
}

/* The same, and the other side's system forgets it at once. */
static int connection_reset(lua_State *L)
{
    struct connection *connection = check_connection(L);
    if (connection->stream != NULL)
        stream_reset(connection->stream);
    return 0;
}

static int connection_gc(lua_State *L)
{
    release(check_connection(L));
    return 0;
}

static const luaL_Reg connection_methods[] = {
    {"read", connection_read},         {"write", connection_write},
    {"starttls", connection_starttls}, {"peer", connection_peer},
    {"uid", connection_uid},           {"step", connection_step},
    {"has_come", connection_has_come}, {"set_timeout", connection_set_timeout},
    {"shutdown", connection_shutdown}, {"close", connection_close},
    {"reset", connection_reset},       {NULL, NULL},
};

void tcp_push_connection(lua_State *L, struct stream *stream)
{
    push_connection(L)->stream = stream;
}

void tcp_make_connection_type(lua_State *L)
{
    bind_make_type(L, CONNECTION_TYPE, connection_methods, connection_gc);
}

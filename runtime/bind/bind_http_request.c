/* crown.core.http_request{ url =, method =, headers = {}, body =, timeout =, ca =, cert =, key =,
 * ca_data =, cert_data =, key_data =, insecure =, most =, silence =, stream = }
 * -> status, header lines, body; or nil, message, code. With `stream`: a stream,
 * stream:line(timeout) -> a line; or nil, message, code; stream:status(); stream:close(). */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "host/host.h"
#include "http/request.h"
#include "lua/task.h"

#define REQUEST_TYPE "crown.http_request"
#define GUARD_TYPE "crown.http_guard"
#define HEADERS_MAX 64
#define TIMEOUT_DEFAULT 5.0
#define SILENCE_DEFAULT 10.0
#define MOST_DEFAULT (16.0 * 1024 * 1024)

struct asked {
    struct http_request *request;
};

/* "Name: value" strings, left on the stack to stay alive. */
static void read_headers(lua_State *L, int index, const char **headers)
{
    unsigned count = 0;
    lua_getfield(L, index, "headers");
    int table = lua_gettop(L);
    luaL_checkstack(L, HEADERS_MAX + 4, "too many headers");
    if (lua_istable(L, table))
        for (lua_pushnil(L); lua_next(L, table) != 0 && count < HEADERS_MAX - 1;) {
            const char *name = lua_tostring(L, -2), *value = lua_tostring(L, -1);
            luaL_argcheck(L,
                          lua_type(L, -2) == LUA_TSTRING && value != NULL &&
                              strpbrk(name, "\r\n:") == NULL && strpbrk(value, "\r\n") == NULL,
                          1, "headers: names and values in one line expected");
            headers[count++] = lua_pushfstring(L, "%s: %s", name, value);
            lua_insert(L, table); /* below the table, out of lua_next's way */
            table++;
            lua_pop(L, 1);
        }
    headers[count] = NULL;
}

static int push_answer(lua_State *L, struct op *op)
{
    struct asked *asked = op->context;
    const struct crown_error *err = http_request_error(asked->request);
    if (err->code != ERROR_NONE)
        return push_error(L, err);
    size_t size;
    lua_pushinteger(L, http_request_status(asked->request));
    const char *bytes = http_request_headers(asked->request, &size);
    lua_pushlstring(L, bytes, size);
    bytes = http_request_body(asked->request, &size);
    lua_pushlstring(L, bytes, size);
    http_request_free(asked->request);
    asked->request = NULL;
    return 3;
}

static int http_request(lua_State *L)
{
    struct crown_error err = {0};
    const char *headers[HEADERS_MAX];
    size_t size = 0;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct asked *asked = lua_newuserdata(L, sizeof(*asked));
    asked->request = NULL;
    luaL_getmetatable(L, REQUEST_TYPE);
    lua_setmetatable(L, 2);
    lua_getfield(L, 1, "body");
    const char *body = lua_tolstring(L, 3, &size);
    read_headers(L, 1, headers);
    double timeout = number_field(L, 1, "timeout", TIMEOUT_DEFAULT);
    const struct http_options options = {
        .url = text_field(L, 1, "url"),
        .method = text_field(L, 1, "method"),
        .headers = headers,
        .body = body,
        .body_size = size,
        .ca = text_field(L, 1, "ca"),
        .cert = text_field(L, 1, "cert"),
        .key = text_field(L, 1, "key"),
        .ca_data = text_field(L, 1, "ca_data"),
        .cert_data = text_field(L, 1, "cert_data"),
        .key_data = text_field(L, 1, "key_data"),
        .insecure = flag_field(L, 1, "insecure"),
        .stream = flag_field(L, 1, "stream"),
        .timeout_ns = flag_field(L, 1, "stream") ? TIME_NEVER : clock_ns_from_seconds(timeout),
        .silence_ns = clock_ns_from_seconds(number_field(L, 1, "silence", SILENCE_DEFAULT)),
        .most = (size_t)number_field(L, 1, "most", MOST_DEFAULT),
    };
    luaL_argcheck(L, options.url != NULL, 1, "url expected");
    asked->request = http_request_start(lua_vm_loop(lua_vm_of(L)), &options, &err);
    if (asked->request == NULL)
        return push_error(L, &err);
    if (options.stream) {
        lua_pushvalue(L, 2);
        return 1;
    }
    struct op *op = http_request_op(asked->request);
    op->context = asked;
    task_keep(L, 2);
    return task_wait(L, op, TIME_NEVER, push_answer);
}

static struct asked *check_asked(lua_State *L)
{
    return luaL_checkudata(L, 1, REQUEST_TYPE);
}

static int push_line(lua_State *L, struct op *op)
{
    struct asked *asked = op->context;
    size_t size;
    const char *line = asked->request != NULL ? http_request_line(asked->request, &size) : NULL;
    if (line != NULL) {
        lua_pushlstring(L, line, size);
        return 1;
    }
    struct crown_error err = {0};
    if (asked->request != NULL)
        err = *http_request_error(asked->request);
    if (err.code == ERROR_NONE)
        (void)error_set(&err, ERROR_CLOSED, "closed");
    return push_error(L, &err);
}

static int stream_line(lua_State *L)
{
    struct asked *asked = check_asked(L);
    struct loop *loop = lua_vm_loop(lua_vm_of(L));
    int64_t until_ns =
        clock_add_ns(loop_now(loop), clock_ns_from_seconds(luaL_optnumber(L, 2, TIMEOUT_DEFAULT)));
    struct op now = {.context = asked};
    size_t size;
    if (asked->request == NULL || http_request_over(asked->request))
        return push_line(L, &now);
    if (http_request_op(asked->request)->wake != NULL)
        return luaL_error(L, "another task waits for a line of this answer");
    const char *line = http_request_line(asked->request, &size);
    if (line != NULL) {
        lua_pushlstring(L, line, size);
        return 1;
    }
    struct op *op = http_request_op(asked->request);
    op->context = asked;
    task_keep(L, 1);
    return task_wait(L, op, until_ns, push_line);
}

static int stream_status(lua_State *L)
{
    const struct asked *asked = check_asked(L);
    lua_pushinteger(L, asked->request != NULL ? http_request_status(asked->request) : 0);
    return 1;
}

static int stream_close(lua_State *L)
{
    struct asked *asked = check_asked(L);
    if (asked->request != NULL)
        http_request_close(asked->request);
    return 0;
}

static int asked_gc(lua_State *L)
{
    struct asked *asked = check_asked(L);
    http_request_free(asked->request);
    asked->request = NULL;
    return 0;
}

/* Goes last: after every request. */
static int guard_gc(lua_State *L)
{
    http_requests_close(lua_vm_loop(lua_vm_of(L)));
    return 0;
}

int bind_open_http_request(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"line", stream_line}, {"status", stream_status}, {"close", stream_close}, {NULL, NULL}};
    static const luaL_Reg none[] = {{NULL, NULL}};
    bind_make_type(L, GUARD_TYPE, none, guard_gc);
    (void)lua_newuserdata(L, 1);
    luaL_getmetatable(L, GUARD_TYPE);
    lua_setmetatable(L, -2);
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
    bind_make_type(L, REQUEST_TYPE, methods, asked_gc);
    lua_pushcfunction(L, http_request);
    return 1;
}

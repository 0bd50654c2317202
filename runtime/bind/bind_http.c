/* crown.core.http: serve(address, port, fn) -> the port, or nil, message, code. fn(path,
 * since, store) -> status, type, body; `since` and `store` are those arguments of the query, or
 * nil. It runs in a task for each request. The server belongs to whoever opens it, and ends with
 * that. */
#include <lauxlib.h>

#include "base/container.h"
#include "base/log.h"
#include "bind/bind.h"
#include "bind/handle.h"
#include "http/server.h"
#include "lua/error_text.h"
#include "lua/task.h"

#define SERVER_TYPE "crown.http_server"

struct served {
    struct handle handle;
    struct http_server *server;
};

static void answer_failure(struct http_exchange *exchange, const char *problem)
{
    static const char text[] = "internal error\n";
    const struct http_answer answer = {500, "text/plain; charset=utf-8", text, sizeof(text) - 1};
    log_error("http: %s", problem != NULL ? problem : "the answer is no status, type and body");
    http_exchange_answer(exchange, &answer);
}

static void answered(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct http_exchange *exchange = context;
    lua_State *L = task_state(task);
    if (outcome == TASK_FAILED) {
        answer_failure(exchange, lua_error_text(L));
        return;
    }
    lua_settop(L, lua_gettop(L) - nresults + 3);
    struct http_answer answer = {.status = (unsigned)lua_tonumber(L, -3),
                                 .type = lua_tostring(L, -2)};
    answer.body = lua_tolstring(L, -1, &answer.size);
    if (answer.status == 0 || answer.type == NULL || answer.body == NULL)
        answer_failure(exchange, NULL);
    else
        http_exchange_answer(exchange, &answer);
}

static void handle(void *context, struct http_exchange *exchange, const char *path)
{
    struct served *served = context;
    lua_State *L = handle_push(&served->handle);
    lua_pushstring(L, path);
    lua_pushstring(L, http_exchange_argument(exchange, "since")); /* nil where it is NULL */
    lua_pushstring(L, http_exchange_argument(exchange, "store"));
    if (!handle_ask(&served->handle, 3, answered, exchange))
        answer_failure(exchange, "its scope is over");
}

static void release(struct served *served)
{
    http_server_close(served->server);
    served->server = NULL;
    handle_close(&served->handle);
}

static void scope_ended(struct scope_member *member)
{
    release(container_of(member, struct served, handle.member));
}

static const struct scope_kind server_kind = {.name = "http server", .end = scope_ended};

static int http_serve(lua_State *L)
{
    struct crown_error err = {0};
    const char *address = luaL_optstring(L, 1, NULL);
    int port = luaL_checkint(L, 2);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    luaL_argcheck(L, port >= 0 && port <= 65535, 2, "a port");
    lua_settop(L, 3);
    struct scope *scope = task_scope_here(L);
    if (scope_closed(scope))
        return push_scope_over(L);
    struct served *served = lua_newuserdata(L, sizeof(*served));
    *served = (struct served){.server = NULL};
    luaL_getmetatable(L, SERVER_TYPE);
    lua_setmetatable(L, -2);
    served->server =
        http_server_open(lua_vm_loop(lua_vm_of(L)), address, (unsigned)port, handle, served, &err);
    if (served->server == NULL)
        return push_error(L, &err);
    handle_open(L, &served->handle, 4, 3, scope, &server_kind);
    lua_pushinteger(L, (lua_Integer)http_server_port(served->server));
    return 1;
}

static int server_gc(lua_State *L)
{
    release(luaL_checkudata(L, 1, SERVER_TYPE));
    return 0;
}

int bind_open_http(lua_State *L)
{
    static const luaL_Reg methods[] = {{NULL, NULL}};
    static const luaL_Reg functions[] = {{"serve", http_serve}, {NULL, NULL}};
    bind_make_type(L, SERVER_TYPE, methods, server_gc);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

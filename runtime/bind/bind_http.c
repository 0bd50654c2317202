/* crown.core.http: serve(address, port, fn) -> the port, or nil, message, code. fn(path) -> status,
 * type, body; it must not wait. One server a runtime, until its end. */
#include <lauxlib.h>
#include <stdlib.h>

#include "base/log.h"
#include "bind/bind.h"
#include "host/host.h"
#include "http/server.h"

#define SERVER_TYPE "crown.http_server"

struct served {
    struct http_server *server;
    lua_State *L; /* the main one: requests come from the loop */
    int function; /* registry reference */
    int answer;   /* keeps the last answer's strings alive */
};

static void answer_failure(struct served *served, struct http_answer *answer)
{
    static const char text[] = "internal error\n";
    log_error("http: %s", lua_tostring(served->L, -1));
    *answer = (struct http_answer){500, "text/plain; charset=utf-8", text, sizeof(text) - 1};
}

static void handle(void *context, const char *path, struct http_answer *answer)
{
    struct served *served = context;
    lua_State *L = served->L;
    int top = lua_gettop(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, served->function);
    lua_pushstring(L, path);
    if (lua_pcall(L, 1, 3, 0) != 0 || lua_tostring(L, -1) == NULL || lua_tostring(L, -2) == NULL) {
        answer_failure(served, answer);
        lua_settop(L, top);
        return;
    }
    answer->status = (unsigned)lua_tonumber(L, -3);
    answer->type = lua_tostring(L, -2);
    answer->body = lua_tolstring(L, -1, &answer->size);
    lua_rawgeti(L, LUA_REGISTRYINDEX, served->answer);
    lua_insert(L, -3);
    lua_rawseti(L, -3, 1);
    lua_rawseti(L, -2, 2);
    lua_settop(L, top);
}

static int http_serve(lua_State *L)
{
    struct crown_error err = {0};
    const char *address = luaL_optstring(L, 1, NULL);
    int port = luaL_checkint(L, 2);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    luaL_argcheck(L, port >= 0 && port <= 65535, 2, "a port");
    struct served *served = lua_newuserdata(L, sizeof(*served));
    *served = (struct served){.L = lua_vm_state(lua_vm_of(L))};
    luaL_getmetatable(L, SERVER_TYPE);
    lua_setmetatable(L, -2);
    served->server =
        http_server_open(lua_vm_loop(lua_vm_of(L)), address, (unsigned)port, handle, served, &err);
    if (served->server == NULL)
        return push_error(L, &err);
    lua_pushvalue(L, 3);
    served->function = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    served->answer = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, -1);
    (void)luaL_ref(L, LUA_REGISTRYINDEX); /* alive until the state is closed */
    lua_pushinteger(L, (lua_Integer)http_server_port(served->server));
    return 1;
}

static int server_gc(lua_State *L)
{
    struct served *served = luaL_checkudata(L, 1, SERVER_TYPE);
    http_server_close(served->server);
    served->server = NULL;
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

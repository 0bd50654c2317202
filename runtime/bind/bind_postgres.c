/* crown.core.postgres: the bare client, for lua/crown/postgres.
 * open(url, options) -> client, or nil, message, code. Options: connect_timeout (5), silence
 * (as connect_timeout), keep, label (of
 * the events oracle.connected and oracle.disconnected; none without it), on_event(kind, …):
 * "notified", channel, payload; "closed", generation, message; with the option setup, "connected",
 * generation: then client:admit(generation [, problem]) has to follow.
 * client:ready(timeout) -> generation · client:query(sql, timeout, generation, …) -> rows ·
 * client:batch(sql, columns) -> batch · batch:call(window, timeout, …) -> true, values…
 * or false · all of them nil, message, code when it fails; the code is the SQLSTATE where there is
 * one. */
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/clock.h"
#include "bind/bind.h"
#include "host/host.h"
#include "host/telemetry.h"
#include "lua/task.h"
#include "postgres/batch.h"
#include "postgres/client.h"

#define CLIENT_TYPE "crown.postgres.client"
#define REQUEST_TYPE "crown.postgres.request"
#define BATCH_TYPE "crown.postgres.batch"
#define CALL_TYPE "crown.postgres.call"
#define VALUES_MAX 64
#define NUMBER_SIZE 32
#define INTEGER_EXACT 9007199254740992LL /* 2^53: beyond it a Lua number skips integers */

struct client {
    struct postgres_client *client; /* NULL once closed */
    struct host *host;
    int on_event; /* registry reference */
    char label[64];
};

static struct client *check_client(lua_State *L)
{
    return luaL_checkudata(L, 1, CLIENT_TYPE);
}

static int push_closed(lua_State *L)
{
    struct crown_error err;
    (void)error_set(&err, ERROR_CLOSED, "postgres: this client was closed");
    return push_error(L, &err);
}

static int64_t ns_at(lua_State *L, int index)
{
    return clock_ns_from_seconds(luaL_checknumber(L, index));
}

/* A handle of a C object; its environment table keeps the objects alive that it depends on. */
static void **push_handle(lua_State *L, const char *type, int depends_on)
{
    void **handle = lua_newuserdata(L, sizeof(*handle));
    *handle = NULL;
    luaL_getmetatable(L, type);
    lua_setmetatable(L, -2);
    lua_getfenv(L, depends_on);
    lua_setfenv(L, -2);
    return handle;
}

static void keep_alive(lua_State *L, int object)
{
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, object);
    lua_rawseti(L, -2, 1);
    lua_setfenv(L, object);
}

/* --- events */

/* The kind and its values become a task, once on_event is beneath them. */
static void tell(struct client *client, const char *kind, const char *first, const char *second)
{
    lua_State *L = lua_host_state(host_lua(client->host));
    if (client->on_event == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, client->on_event);
    lua_pushstring(L, kind);
    lua_pushstring(L, first);
    lua_pushstring(L, second);
    (void)task_spawn(host_lua(client->host), L, 3, NULL, NULL, NULL);
}

static void state_changed(void *context, bool connected, const char *where,
                          const struct crown_error *err)
{
    struct client *client = context;
    if (client->label[0] == '\0')
        return;
    const struct log_field fields[] = {
        log_string("store", client->label),
        connected ? log_string("server", where) : log_string("error", err->message),
    };
    telemetry_emit(host_telemetry(client->host), NULL,
                   connected ? TELEMETRY_ORACLE_CONNECTED : TELEMETRY_ORACLE_DISCONNECTED, fields,
                   2);
}

static void notified(void *context, const char *channel, const char *payload)
{
    tell(context, "notified", channel, payload);
}

static void tell_generation(struct client *client, const char *kind, uint64_t generation,
                            const char *message)
{
    char number[NUMBER_SIZE];
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)generation);
    tell(client, kind, number, message);
}

static void connected(void *context, uint64_t generation)
{
    tell_generation(context, "connected", generation, NULL);
}

static void closed(void *context, uint64_t generation, const struct crown_error *err)
{
    tell_generation(context, "closed", generation, err->message);
}

/* --- values */

/* Texts for SQL from the arguments at `first` and up; numbers are written into `numbers`. */
static int read_values(lua_State *L, int first, const char **values, char (*numbers)[NUMBER_SIZE])
{
    int count = lua_gettop(L) - first + 1;
    if (count > VALUES_MAX)
        return luaL_error(L, "at most %d values", VALUES_MAX);
    for (int i = 0; i < count; i++) {
        int index = first + i;
        switch (lua_type(L, index)) {
        case LUA_TNIL:
            values[i] = NULL;
            break;
        case LUA_TBOOLEAN:
            values[i] = lua_toboolean(L, index) ? "t" : "f";
            break;
        case LUA_TNUMBER:
            (void)snprintf(numbers[i], NUMBER_SIZE, "%.17g", lua_tonumber(L, index));
            values[i] = numbers[i];
            break;
        default:
            values[i] = luaL_checkstring(L, index);
            luaL_argcheck(L, strlen(values[i]) == lua_objlen(L, index), index,
                          "a text for Postgres holds no zero byte");
        }
    }
    return count > 0 ? count : 0;
}

static void push_value(lua_State *L, const struct pg_result *result, int row, int column)
{
    size_t size = 0;
    const char *text = postgres_result_text(result, row, column, &size);
    enum postgres_type type = postgres_result_type(result, column);
    if (text == NULL) {
        lua_pushnil(L);
        return;
    }
    if (type == POSTGRES_BOOLEAN) {
        lua_pushboolean(L, text[0] == 't');
        return;
    }
    long long integer = type == POSTGRES_INTEGER ? strtoll(text, NULL, 10) : 0;
    if (type == POSTGRES_NUMBER)
        lua_pushnumber(L, strtod(text, NULL));
    else if (type == POSTGRES_INTEGER && llabs(integer) <= INTEGER_EXACT)
        lua_pushnumber(L, (lua_Number)integer);
    else
        lua_pushlstring(L, text, size);
}

static void push_rows(lua_State *L, const struct pg_result *result)
{
    int rows = postgres_result_rows(result), columns = postgres_result_columns(result);
    lua_createtable(L, rows, 1);
    for (int row = 0; row < rows; row++) {
        lua_createtable(L, 0, columns);
        for (int column = 0; column < columns; column++) {
            push_value(L, result, row, column);
            lua_setfield(L, -2, postgres_result_name(result, column));
        }
        lua_rawseti(L, -2, row + 1);
    }
    lua_pushnumber(L, (lua_Number)postgres_result_touched(result));
    lua_setfield(L, -2, "affected");
}

/* --- client:query, client:ready */

static int push_answer(lua_State *L, struct op *op)
{
    struct postgres_request *request =
        (struct postgres_request *)((char *)op - offsetof(struct postgres_request, op));
    if (request->error.code != ERROR_NONE) {
        (void)push_error(L, &request->error);
        if (request->sqlstate[0] != '\0') {
            lua_pop(L, 1);
            lua_pushstring(L, request->sqlstate);
        }
        return 3;
    }
    if (request->sql == NULL)
        lua_pushnumber(L, (lua_Number)request->generation_used);
    else
        push_rows(L, request->result);
    return 1;
}

static int ask(lua_State *L, struct client *client, const char *sql, int64_t timeout_ns,
               uint64_t generation, const char *const *values, int count)
{
    struct postgres_request **handle = (struct postgres_request **)push_handle(L, REQUEST_TYPE, 1);
    *handle = postgres_request_new(lua_host_loop(lua_host_of(L)), sql, values, count);
    if (*handle == NULL)
        return luaL_error(L, "out of memory");
    (*handle)->timeout_ns = timeout_ns;
    (*handle)->generation = generation;
    postgres_client_send(client->client, *handle);
    task_keep(L, -1);
    return task_wait(L, &(*handle)->op, TIME_NEVER, push_answer);
}

static int client_query(lua_State *L)
{
    struct client *client = check_client(L);
    const char *values[VALUES_MAX];
    char numbers[VALUES_MAX][NUMBER_SIZE];
    const char *sql = luaL_checkstring(L, 2);
    int64_t timeout_ns = ns_at(L, 3);
    uint64_t generation = (uint64_t)luaL_checknumber(L, 4);
    int count = read_values(L, 5, values, numbers);
    if (client->client == NULL)
        return push_closed(L);
    return ask(L, client, sql, timeout_ns, generation, values, count);
}

/* Returns the generation at once where there is a connection, else waits for one. */
static int client_ready(lua_State *L)
{
    struct client *client = check_client(L);
    int64_t timeout_ns = ns_at(L, 2);
    if (client->client == NULL)
        return push_closed(L);
    uint64_t generation = postgres_client_generation(client->client);
    if (generation == 0 || !postgres_client_admitted(client->client))
        return ask(L, client, NULL, timeout_ns, 0, NULL, 0);
    lua_pushnumber(L, (lua_Number)generation);
    return 1;
}

static int request_gc(lua_State *L)
{
    struct postgres_request **handle = luaL_checkudata(L, 1, REQUEST_TYPE);
    postgres_request_free(*handle);
    *handle = NULL;
    return 0;
}

/* --- client:batch, batch:call */

struct batch {
    struct postgres_batch *batch;
    int columns;
};

static int client_batch(lua_State *L)
{
    struct client *client = check_client(L);
    const char *sql = luaL_checkstring(L, 2);
    int columns = luaL_checkint(L, 3);
    luaL_argcheck(L, columns >= 1 && columns <= POSTGRES_BATCH_COLUMNS, 3, "1 to 8 columns");
    if (client->client == NULL)
        return push_closed(L);
    struct batch *batch = lua_newuserdata(L, sizeof(*batch));
    *batch = (struct batch){.columns = columns};
    luaL_getmetatable(L, BATCH_TYPE);
    lua_setmetatable(L, -2);
    lua_createtable(L, 2, 0);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, 2);
    lua_setfenv(L, -2);
    batch->batch = postgres_batch_new(client->client, sql, columns);
    if (batch->batch == NULL)
        return luaL_error(L, "out of memory");
    return 1;
}

static int push_part(lua_State *L, struct op *op)
{
    const struct postgres_call *call =
        (struct postgres_call *)((char *)op - offsetof(struct postgres_call, op));
    if (call->error.code != ERROR_NONE)
        return push_error(L, &call->error);
    lua_pushboolean(L, call->row >= 0);
    if (call->row < 0)
        return 1;
    int columns = postgres_result_columns(call->result);
    for (int column = 1; column < columns; column++)
        push_value(L, call->result, call->row, column);
    return columns;
}

static int batch_call(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    const char *values[VALUES_MAX] = {NULL};
    char numbers[VALUES_MAX][NUMBER_SIZE];
    int64_t window_ns = ns_at(L, 2), timeout_ns = ns_at(L, 3);
    int count = read_values(L, 4, values, numbers);
    if (count != batch->columns)
        return luaL_error(L, "%d values expected, not %d", batch->columns, count);
    for (int i = 0; i < count; i++)
        luaL_argcheck(L, values[i] != NULL, 4 + i, "a batch knows no NULL");
    struct postgres_call **handle = (struct postgres_call **)push_handle(L, CALL_TYPE, 1);
    *handle = postgres_batch_call(batch->batch, values, window_ns, timeout_ns);
    if (*handle == NULL)
        return luaL_error(L, "out of memory");
    task_keep(L, -1);
    return task_wait(L, &(*handle)->op, TIME_NEVER, push_part);
}

static int batch_gc(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    postgres_batch_free(batch->batch);
    batch->batch = NULL;
    return 0;
}

static int call_gc(lua_State *L)
{
    struct postgres_call **handle = luaL_checkudata(L, 1, CALL_TYPE);
    postgres_call_free(*handle);
    *handle = NULL;
    return 0;
}

/* --- the rest */

static int client_listen(lua_State *L)
{
    struct client *client = check_client(L);
    struct crown_error err;
    if (client->client == NULL)
        return push_closed(L);
    if (postgres_client_listen(client->client, luaL_checkstring(L, 2), &err) < 0)
        return push_error(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

static int client_unlisten(lua_State *L)
{
    struct client *client = check_client(L);
    if (client->client != NULL)
        postgres_client_unlisten(client->client, luaL_checkstring(L, 2));
    return 0;
}

/* client:admit(generation [, problem]): the end of a connection's setup. */
static int client_admit(lua_State *L)
{
    struct client *client = check_client(L);
    uint64_t generation = (uint64_t)luaL_checknumber(L, 2);
    struct crown_error err;
    bool refused = !lua_isnoneornil(L, 3);
    if (refused)
        (void)error_set(&err, ERROR_STORE, "%s", luaL_checkstring(L, 3));
    if (client->client != NULL)
        postgres_client_admit(client->client, generation, refused ? &err : NULL);
    return 0;
}

static int client_disconnect(lua_State *L)
{
    struct client *client = check_client(L);
    if (client->client != NULL)
        postgres_client_disconnect(client->client);
    return 0;
}

static int client_generation(lua_State *L)
{
    const struct client *client = check_client(L);
    lua_pushnumber(
        L, client->client != NULL ? (lua_Number)postgres_client_generation(client->client) : 0);
    return 1;
}

/* The server process that the connection's start named: a pooler names one of its own. */
static int client_server_pid(lua_State *L)
{
    const struct client *client = check_client(L);
    lua_pushinteger(L, client->client != NULL ? postgres_client_server_pid(client->client) : 0);
    return 1;
}

/* -> the socket, and its own port (0 for a UNIX socket); nothing without a connection. */
static int client_socket(lua_State *L)
{
    const struct client *client = check_client(L);
    struct address address = {.size = sizeof(address.storage)};
    int fd = client->client != NULL ? postgres_client_socket(client->client) : -1;
    if (fd < 0 || getsockname(fd, address_fill(&address), &address.size) < 0)
        return 0;
    lua_pushinteger(L, fd);
    lua_pushinteger(L, (lua_Integer)address_port(&address));
    return 2;
}

/* While held, the runtime does not end for want of elections: somebody waits for notifications. */
static int client_hold(lua_State *L)
{
    host_hold(check_client(L)->host);
    return 0;
}

static int client_release(lua_State *L)
{
    host_release(check_client(L)->host);
    return 0;
}

static int client_close(lua_State *L)
{
    struct client *client = check_client(L);
    postgres_client_free(client->client);
    client->client = NULL;
    luaL_unref(L, LUA_REGISTRYINDEX, client->on_event);
    client->on_event = LUA_NOREF;
    return 0;
}

static void read_label(lua_State *L, struct client *client)
{
    lua_getfield(L, 2, "label");
    if (lua_isstring(L, -1))
        (void)snprintf(client->label, sizeof(client->label), "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
}

static int postgres_open(lua_State *L)
{
    struct crown_error err;
    const char *url = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    struct postgres_client_options options = {.url = url};
    lua_getfield(L, 2, "connect_timeout");
    options.connect_timeout_ns = clock_ns_from_seconds(luaL_optnumber(L, -1, 5));
    lua_getfield(L, 2, "silence");
    options.silence_ns = lua_isnumber(L, -1) ? clock_ns_from_seconds(lua_tonumber(L, -1))
                                             : options.connect_timeout_ns;
    lua_getfield(L, 2, "keep");
    options.keep = lua_toboolean(L, -1);
    lua_getfield(L, 2, "setup");
    options.setup = lua_toboolean(L, -1);
    lua_settop(L, 2);
    struct client *client = lua_newuserdata(L, sizeof(*client));
    *client = (struct client){.host = check_host(L), .on_event = LUA_NOREF};
    luaL_getmetatable(L, CLIENT_TYPE);
    lua_setmetatable(L, -2);
    keep_alive(L, 3);
    read_label(L, client);
    const struct postgres_client_events events = {.state = state_changed,
                                                  .notified = notified,
                                                  .connected = connected,
                                                  .closed = closed,
                                                  .context = client};
    client->client = postgres_client_new(lua_host_loop(lua_host_of(L)), &options, &events, &err);
    if (client->client == NULL)
        return push_error(L, &err);
    lua_getfield(L, 2, "on_event");
    if (lua_isfunction(L, -1))
        client->on_event = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_settop(L, 3);
    return 1;
}

int bind_open_postgres(lua_State *L)
{
    static const luaL_Reg client_methods[] = {
        {"query", client_query},
        {"ready", client_ready},
        {"batch", client_batch},
        {"listen", client_listen},
        {"unlisten", client_unlisten},
        {"admit", client_admit},
        {"disconnect", client_disconnect},
        {"generation", client_generation},
        {"server_pid", client_server_pid},
        {"socket", client_socket},
        {"hold", client_hold},
        {"release", client_release},
        {"close", client_close},
        {NULL, NULL},
    };
    static const luaL_Reg batch_methods[] = {{"call", batch_call}, {NULL, NULL}};
    static const luaL_Reg none[] = {{NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", postgres_open}, {NULL, NULL}};
    bind_make_type(L, CLIENT_TYPE, client_methods, client_close);
    bind_make_type(L, REQUEST_TYPE, none, request_gc);
    bind_make_type(L, BATCH_TYPE, batch_methods, batch_gc);
    bind_make_type(L, CALL_TYPE, none, call_gc);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

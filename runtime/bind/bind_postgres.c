/* crown.core.postgres: the bare client, for lua/crown/postgres.
 * open(url, options) -> client, or nil, message, code. Options: connect_timeout (5), silence
 * (as connect_timeout), keep, label (of
 * the events oracle.connected and oracle.disconnected; none without it), on_event(kind, …):
 * "notified": client:heard() has what there was to hear (bind/postgres_heard.h); "closed",
 * generation, message; with the option setup, "connected", generation: then client:admit(generation
 * [, problem]) has to follow. client:prepare(on) · client:will(message) -> true: see there.
 * client:ready(timeout) -> generation · client:query(sql, timeout, generation, …) -> rows, and what
 * has the rest of them if there are many (bind/postgres_rows.h) · all of them nil, message, code
 * when it fails; the code is the SQLSTATE where there is one. options() -> the names of libpq's
 * options, as keys. */
#include <lauxlib.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/clock.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "bind/postgres_heard.h"
#include "bind/postgres_rows.h"
#include "bind/postgres_values.h"
#include "host/host.h"
#include "lua/task.h"
#include "postgres/client.h"
#include "postgres/libpq.h"
#include "process/will.h"
#include "telemetry/telemetry.h"

#define CLIENT_TYPE "crown.postgres.client"
#define REQUEST_TYPE "crown.postgres.request"

struct client {
    struct postgres_client *client; /* NULL once closed */
    struct host *host;
    int on_event; /* registry reference */
    struct pg_heard heard;
    struct will will; /* of this connection, or none */
    bool repeats;     /* its statements, see postgres_request */
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
    lua_State *L = lua_vm_state(client->host->env.lua);
    if (client->on_event == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, client->on_event);
    lua_pushstring(L, kind);
    lua_pushstring(L, first);
    lua_pushstring(L, second);
    (void)task_spawn(client->host->env.lua, L, 3, NULL, NULL, NULL);
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
    telemetry_emit(client->host->env.telemetry, NULL,
                   connected ? TELEMETRY_ORACLE_CONNECTED : TELEMETRY_ORACLE_DISCONNECTED, fields,
                   2);
}

static void notified(void *context, const char *channel, const char *payload)
{
    struct client *client = context;
    lua_State *L = lua_vm_state(client->host->env.lua);
    if (client->on_event != LUA_NOREF && pg_heard_add(&client->heard, L, channel, payload))
        tell(client, "notified", NULL, NULL);
}

static void tell_generation(struct client *client, const char *kind, uint64_t generation,
                            const char *message)
{
    char number[PG_NUMBER_SIZE];
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)generation);
    tell(client, kind, number, message);
}

static void connected(void *context, uint64_t generation)
{
    tell_generation(context, "connected", generation, NULL);
}

static void closed(void *context, uint64_t generation, const struct crown_error *err)
{
    struct client *client = context;
    will_revoke(&client->will);
    tell_generation(client, "closed", generation, err->message);
}

/* --- client:query, client:ready */

static void let_go(struct postgres_request **handle)
{
    postgres_request_free(*handle);
    *handle = NULL;
}

static int push_outcome(lua_State *L, struct postgres_request *request)
{
    if (request->error.code != ERROR_NONE)
        return pg_push_failure(L, &request->error, request->sqlstate);
    if (request->sql == NULL) {
        lua_pushnumber(L, (lua_Number)request->generation_used);
        return 1;
    }
    return pg_push_rows(L, &request->result);
}

/* The collector does not see how much hangs on a handle: what was told is given back at once. */
static int push_answer(lua_State *L, struct op *op)
{
    struct postgres_request **handle = op->context;
    int count = push_outcome(L, *handle);
    let_go(handle);
    return count;
}

static int ask(lua_State *L, struct client *client, const char *sql, int64_t timeout_ns,
               uint64_t generation, const char *const *values, int count)
{
    struct postgres_request **handle = lua_newuserdata(L, sizeof(*handle));
    *handle = NULL;
    luaL_getmetatable(L, REQUEST_TYPE);
    lua_setmetatable(L, -2);
    lua_getfenv(L, 1); /* what the client keeps alive */
    lua_setfenv(L, -2);
    *handle = postgres_request_new(lua_vm_loop(lua_vm_of(L)), sql, values, count);
    if (*handle == NULL)
        return luaL_error(L, "out of memory");
    (*handle)->timeout_ns = timeout_ns;
    (*handle)->generation = generation;
    (*handle)->repeated = client->repeats;
    (*handle)->op.context = handle;
    postgres_client_send(client->client, *handle);
    task_keep(L, -1);
    return task_wait(L, &(*handle)->op, TIME_NEVER, push_answer);
}

/* client:prepare(on): whether what is asked from now on is asked again and again. */
static int client_prepare(lua_State *L)
{
    check_client(L)->repeats = lua_toboolean(L, 2);
    return 0;
}

static int client_query(lua_State *L)
{
    struct client *client = check_client(L);
    const char *values[PG_VALUES_MAX];
    char numbers[PG_VALUES_MAX][PG_NUMBER_SIZE];
    const char *sql = luaL_checkstring(L, 2);
    int64_t timeout_ns = pg_time_at(L, 3);
    uint64_t generation = (uint64_t)luaL_checknumber(L, 4);
    int count = pg_read_values(L, 5, values, numbers);
    if (client->client == NULL)
        return push_closed(L);
    return ask(L, client, sql, timeout_ns, generation, values, count);
}

/* Returns the generation at once where there is a connection, else waits for one. */
static int client_ready(lua_State *L)
{
    struct client *client = check_client(L);
    int64_t timeout_ns = pg_time_at(L, 2);
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
    let_go(luaL_checkudata(L, 1, REQUEST_TYPE));
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

static int share(struct client *client, const char *message, size_t length, struct crown_error *err)
{
    if (client->will.paper == NULL && will_open(&client->will, client->host->link, err) < 0)
        return -1;
    int socket = postgres_client_share_socket(client->client, &client->will.paper->midway);
    if (socket < 0)
        return error_set(err, ERROR_USAGE, "postgres: nobody else may send on this connection");
    return will_leave(&client->will, socket, message, length, err);
}

/* client:will(message): what the supervisor sends on this connection when this runtime is dead and
 * its trees are gone (process/will.h). */
static int client_will(lua_State *L)
{
    struct client *client = check_client(L);
    struct crown_error err;
    size_t length;
    const char *message = luaL_checklstring(L, 2, &length);
    if (client->client == NULL)
        return push_closed(L);
    if (share(client, message, length, &err) < 0)
        return push_error(L, &err);
    lua_pushboolean(L, 1);
    return 1;
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

/* -> the socket, and its own address, as the server sees it where nothing stands between the two;
 * nothing without a connection. */
static int client_socket(lua_State *L)
{
    const struct client *client = check_client(L);
    struct address address = {.size = sizeof(address.storage)};
    int fd = client->client != NULL ? postgres_client_socket(client->client) : -1;
    if (fd < 0 || getsockname(fd, address_fill(&address), &address.size) < 0)
        return 0;
    lua_pushinteger(L, fd);
    char text[ADDRESS_TEXT_SIZE];
    address_text(&address, text, sizeof(text));
    lua_pushstring(L, text);
    return 2;
}

static void push_instant(lua_State *L, int64_t at_ns)
{
    if (at_ns > 0)
        lua_pushnumber(L, clock_seconds_from_ns(at_ns));
    else
        lua_pushnil(L);
}

/* client:condition() -> how it is, since when, when it heard of a server last, how often a
 * connection was lost, the last server, why there is none that proved good, how many connections
 * servers may see of it now, and at most. */
static int client_condition(lua_State *L)
{
    const struct client *client = check_client(L);
    struct postgres_client_condition condition = {.state = "closed", .problem = NULL};
    if (client->client != NULL)
        postgres_client_condition(client->client, &condition);
    lua_pushstring(L, condition.state);
    push_instant(L, condition.since_ns);
    push_instant(L, condition.heard_ns);
    lua_pushnumber(L, (lua_Number)condition.reconnects);
    lua_pushstring(L, condition.server);
    lua_pushstring(L, condition.problem);
    lua_pushinteger(L, condition.connections);
    lua_pushinteger(L, condition.limit);
    return 8;
}

static int client_heard(lua_State *L)
{
    return pg_heard_take(&check_client(L)->heard, L);
}

/* While held, the runtime does not end for want of elections: somebody waits for notifications. */
static int client_hold(lua_State *L)
{
    lifetime_hold(&check_client(L)->host->lifetime);
    return 0;
}

static int client_release(lua_State *L)
{
    lifetime_release(&check_client(L)->host->lifetime);
    return 0;
}

static int client_close(lua_State *L)
{
    struct client *client = check_client(L);
    postgres_client_free(client->client);
    client->client = NULL;
    will_close(&client->will);
    luaL_unref(L, LUA_REGISTRYINDEX, client->on_event);
    client->on_event = LUA_NOREF;
    (void)pg_heard_take(&client->heard, L);
    return 0;
}

static int postgres_open(lua_State *L)
{
    struct crown_error err;
    const char *url = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    struct postgres_client_options options = {.url = url};
    lua_getfield(L, 2, "connect_timeout");
    double connect_timeout = luaL_optnumber(L, -1, 5);
    const char *label = text_field(L, 2, "label");
    options.connect_timeout_ns = clock_ns_from_seconds(connect_timeout);
    options.silence_ns = clock_ns_from_seconds(number_field(L, 2, "silence", connect_timeout));
    options.keep = flag_field(L, 2, "keep");
    options.setup = flag_field(L, 2, "setup");
    options.bounded = flag_field(L, 2, "bounded");
    lua_settop(L, 2);
    struct client *client = lua_newuserdata(L, sizeof(*client));
    *client = (struct client){.host = check_host(L), .on_event = LUA_NOREF};
    pg_heard_init(&client->heard);
    luaL_getmetatable(L, CLIENT_TYPE);
    lua_setmetatable(L, -2);
    keep_alive(L, 3);
    (void)snprintf(client->label, sizeof(client->label), "%s", label != NULL ? label : "");
    const struct postgres_client_events events = {.state = state_changed,
                                                  .notified = notified,
                                                  .connected = connected,
                                                  .closed = closed,
                                                  .context = client};
    client->client = postgres_client_new(lua_vm_loop(lua_vm_of(L)), &options, &events, &err);
    if (client->client == NULL)
        return push_error(L, &err);
    lua_getfield(L, 2, "on_event");
    if (lua_isfunction(L, -1))
        client->on_event = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_settop(L, 3);
    return 1;
}

static int postgres_options(lua_State *L)
{
    struct crown_error err;
    if (libpq_load(&err) < 0)
        return push_error(L, &err);
    PQconninfoOption *options = libpq.PQconninfoParse("", NULL);
    if (options == NULL)
        return luaL_error(L, "out of memory");
    lua_newtable(L);
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, option->keyword);
    }
    libpq.PQconninfoFree(options);
    return 1;
}

int bind_open_postgres(lua_State *L)
{
    static const luaL_Reg client_methods[] = {
        {"query", client_query},
        {"ready", client_ready},
        {"listen", client_listen},
        {"unlisten", client_unlisten},
        {"admit", client_admit},
        {"prepare", client_prepare},
        {"will", client_will},
        {"disconnect", client_disconnect},
        {"generation", client_generation},
        {"server_pid", client_server_pid},
        {"socket", client_socket},
        {"condition", client_condition},
        {"heard", client_heard},
        {"hold", client_hold},
        {"release", client_release},
        {"close", client_close},
        {NULL, NULL},
    };
    static const luaL_Reg none[] = {{NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"open", postgres_open}, {"options", postgres_options}, {NULL, NULL}};
    bind_make_type(L, CLIENT_TYPE, client_methods, client_close);
    bind_make_type(L, REQUEST_TYPE, none, request_gc);
    pg_rows_make_type(L);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

#include "bind/postgres_refresher.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "bind/fields.h"
#include "bind/postgres_batch.h"
#include "bind/postgres_values.h"
#include "candidate/refresher.h"
#include "lua/error_text.h"
#include "lua/vm.h"
#include "postgres/batch.h"

#define EPOCH 1 /* columns of a row */
#define EVICTED 2

struct lease_refresher {
    struct refresher refresher;
    struct postgres_batch *batch, *releases;
    lua_State *L;
    int columns;
    const char *fields[POSTGRES_BATCH_COLUMNS]; /* Lua's own; NULL: it has a number */
    char numbers[POSTGRES_BATCH_COLUMNS][PG_NUMBER_SIZE];
    int64_t window_ns, timeout_ns;
    int judge;       /* registry reference */
    uint64_t judged; /* the statement of which it was asked last */
    bool counts;     /* and whether that one's answers count */
};

/* A column's text, which lives as long as it is on the stack; or NULL: it has none that a batch
 * takes. */
static const char *text_of(lua_State *L, int state, const struct lease_refresher *refresher,
                           int column, char *number)
{
    size_t size;
    if (refresher->fields[column] == NULL)
        return refresher->numbers[column];
    lua_getfield(L, state, refresher->fields[column]);
    if (lua_type(L, -1) == LUA_TNUMBER) {
        pg_write_number(number, lua_tonumber(L, -1));
        return number;
    }
    if (lua_type(L, -1) != LUA_TSTRING)
        return NULL;
    const char *text = lua_tolstring(L, -1, &size);
    return strlen(text) == size ? text : NULL;
}

static struct op *call(const struct lease_refresher *refresher, struct postgres_batch *batch,
                       int64_t window_ns, lua_State *L)
{
    const char *values[POSTGRES_BATCH_COLUMNS];
    char numbers[POSTGRES_BATCH_COLUMNS][PG_NUMBER_SIZE];
    int state = lua_gettop(L);
    struct postgres_call *made = NULL;
    bool whole = lua_istable(L, state) && lua_checkstack(L, refresher->columns);
    for (int i = 0; whole && i < refresher->columns; i++) {
        values[i] = text_of(L, state, refresher, i, numbers[i]);
        whole = values[i] != NULL;
    }
    if (whole)
        made = postgres_batch_call(batch, values, window_ns, refresher->timeout_ns);
    lua_settop(L, state);
    return made != NULL ? &made->op : NULL;
}

static struct op *ask(struct refresher *base, const struct refresher_term *term, lua_State *L)
{
    (void)term;
    const struct lease_refresher *refresher = container_of(base, struct lease_refresher, refresher);
    return call(refresher, refresher->batch, refresher->window_ns, L);
}

static struct op *release(struct refresher *base, lua_State *L)
{
    const struct lease_refresher *refresher = container_of(base, struct lease_refresher, refresher);
    return call(refresher, refresher->releases, 0, L);
}

static void forget(struct op *op)
{
    postgres_call_free(container_of(op, struct postgres_call, op));
}

static bool judge(const struct lease_refresher *refresher, const struct postgres_call *call,
                  int64_t sent_ns)
{
    lua_State *L = refresher->L;
    int columns = postgres_result_columns(call->result);
    lua_rawgeti(L, LUA_REGISTRYINDEX, refresher->judge);
    lua_pushnumber(L, clock_seconds_from_ns(sent_ns));
    for (int column = 1; column < columns; column++)
        pg_push_value(L, call->result, call->row, column);
    bool fine = lua_pcall(L, columns, 1, 0) == 0;
    bool counts = fine && lua_toboolean(L, -1);
    if (!fine)
        log_error("a refresh was not judged: %s", lua_error_text(L));
    lua_pop(L, 1);
    return counts;
}

/* What is the same for all whom a statement asked for is looked at once. */
static bool counts(struct lease_refresher *refresher, const struct postgres_call *call)
{
    int64_t sent_ns;
    uint64_t statement = postgres_call_statement(call, &sent_ns);
    if (refresher->judged != statement) {
        refresher->judged = statement;
        refresher->counts = judge(refresher, call, sent_ns);
    }
    return refresher->counts;
}

static bool is_same(const struct postgres_call *call, uint64_t epoch)
{
    size_t size;
    if (call->row < 0)
        return false;
    const char *found = postgres_result_text(call->result, call->row, EPOCH, &size);
    const char *evicted = postgres_result_text(call->result, call->row, EVICTED, &size);
    return found != NULL && evicted != NULL && evicted[0] == 'f' &&
           strtoull(found, NULL, 10) == epoch;
}

static enum refresher_answer look(struct refresher *base, struct op *op,
                                  const struct refresher_term *term, struct refresher_found *found)
{
    struct lease_refresher *refresher = container_of(base, struct lease_refresher, refresher);
    struct postgres_call *call = container_of(op, struct postgres_call, op);
    enum refresher_answer answer = REFRESHER_OTHER;
    if (call->error != NULL) {
        found->err = *call->error;
        answer = REFRESHER_UNKNOWN;
    } else if (is_same(call, term->epoch) && counts(refresher, call)) {
        answer = REFRESHER_SAME;
    }
    postgres_call_free(call);
    return answer;
}

/* Names stay Lua's: the table of options is kept with the userdata on top of the stack. */
static void read_fields(lua_State *L, int options, struct lease_refresher *refresher)
{
    lua_getfield(L, options, "fields");
    luaL_checktype(L, -1, LUA_TTABLE);
    for (int i = 0; i < refresher->columns; i++) {
        lua_rawgeti(L, -1, i + 1);
        if (lua_type(L, -1) == LUA_TNUMBER)
            pg_write_number(refresher->numbers[i], lua_tonumber(L, -1));
        else
            refresher->fields[i] = luaL_checkstring(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_createtable(L, 2, 0);
    lua_pushvalue(L, options);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, 1); /* and so is the batch */
    lua_rawseti(L, -2, 2);
    lua_setfenv(L, -2);
}

int pg_refresher_new(lua_State *L, struct postgres_batch *batch, int columns)
{
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_getfield(L, 2, "releases");
    struct postgres_batch *releases = pg_batch_at(L, 3, columns);
    struct lease_refresher *refresher = lua_newuserdata(L, sizeof(*refresher));
    *refresher = (struct lease_refresher){
        .refresher = {.ttl_ns = time_field(L, 2, "ttl", 0),
                      .delay_ns = time_field(L, 2, "delay", 0),
                      .ask = ask,
                      .look = look,
                      .release = release,
                      .forget = forget},
        .batch = batch,
        .releases = releases,
        .L = lua_vm_state(lua_vm_of(L)),
        .columns = columns,
        .window_ns = time_field(L, 2, "window", 0),
        .timeout_ns = time_field(L, 2, "timeout", 0),
    };
    read_fields(L, 2, refresher);
    lua_getfield(L, 2, "judge");
    luaL_checktype(L, -1, LUA_TFUNCTION);
    refresher->judge = luaL_ref(L, LUA_REGISTRYINDEX);
    refresher_keep(L);
    return 1;
}

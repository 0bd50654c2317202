#include "bind/postgres_batch.h"

#include <lauxlib.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/postgres_refresher.h"
#include "bind/postgres_values.h"
#include "lua/task.h"
#include "postgres/batch.h"

#define BATCH_TYPE "crown.postgres.batch"

struct batch {
    struct postgres_batch *batch;
    int columns;
};

int pg_batch_new(lua_State *L, struct postgres_client *client)
{
    const char *sql = luaL_checkstring(L, 2);
    int columns = luaL_checkint(L, 3);
    bool timed = lua_toboolean(L, 4);
    luaL_argcheck(L, columns >= 1 && columns <= POSTGRES_BATCH_COLUMNS, 3, "1 to 8 columns");
    struct batch *batch = lua_newuserdata(L, sizeof(*batch));
    *batch = (struct batch){.columns = columns};
    luaL_getmetatable(L, BATCH_TYPE);
    lua_setmetatable(L, -2);
    lua_getfenv(L, 1); /* the client lives as long as its batch */
    lua_setfenv(L, -2);
    batch->batch = postgres_batch_new(client, sql, columns, timed);
    if (batch->batch == NULL)
        return luaL_error(L, "out of memory");
    return 1;
}

struct postgres_batch *pg_batch_at(lua_State *L, int index, int columns)
{
    const struct batch *batch = luaL_checkudata(L, index, BATCH_TYPE);
    luaL_argcheck(L, batch->columns == columns, index, "a batch with other columns");
    return batch->batch;
}

static int push_columns(lua_State *L, const struct postgres_call *call)
{
    if (call->error != NULL)
        return pg_push_failure(L, call->error, postgres_call_sqlstate(call));
    lua_pushboolean(L, call->row >= 0);
    if (call->row < 0)
        return 1;
    int columns = postgres_result_columns(call->result);
    for (int column = 1; column < columns; column++)
        pg_push_value(L, call->result, call->row, column);
    return columns;
}

/* What was told is given back at once; a task that does not hear of it any more cancels the call,
 * which frees it. So nothing here is for the collector, which thousands of calls would keep busy.
 */
static int push_part(lua_State *L, struct op *op)
{
    struct postgres_call *call = op->context;
    int count = push_columns(L, call);
    postgres_call_free(call);
    return count;
}

static int batch_call(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    const char *values[PG_VALUES_MAX] = {NULL};
    char numbers[PG_VALUES_MAX][PG_NUMBER_SIZE];
    int64_t window_ns = pg_time_at(L, 2), timeout_ns = pg_time_at(L, 3);
    int count = pg_read_values(L, 4, values, numbers);
    if (count != batch->columns)
        return luaL_error(L, "%d values expected, not %d", batch->columns, count);
    for (int i = 0; i < count; i++)
        luaL_argcheck(L, values[i] != NULL, 4 + i, "a batch knows no NULL");
    struct postgres_call *call = postgres_batch_call(batch->batch, values, window_ns, timeout_ns);
    if (call == NULL)
        return luaL_error(L, "out of memory");
    call->op.context = call;
    task_keep(L, 1);
    return task_wait(L, &call->op, TIME_NEVER, push_part);
}

/* batch:prepare(on) */
static int batch_prepare(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    postgres_batch_prepare(batch->batch, lua_toboolean(L, 2));
    return 0;
}

/* batch:due(base, rate) */
static int batch_due(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    postgres_batch_due(batch->batch, luaL_checknumber(L, 2), luaL_checknumber(L, 3));
    return 0;
}

static int batch_refresher(lua_State *L)
{
    const struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    return pg_refresher_new(L, batch->batch, batch->columns);
}

static int batch_gc(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    postgres_batch_free(batch->batch);
    batch->batch = NULL;
    return 0;
}

void pg_batch_make_types(lua_State *L)
{
    static const luaL_Reg methods[] = {{"call", batch_call},
                                       {"prepare", batch_prepare},
                                       {"due", batch_due},
                                       {"refresher", batch_refresher},
                                       {NULL, NULL}};
    bind_make_type(L, BATCH_TYPE, methods, batch_gc);
}

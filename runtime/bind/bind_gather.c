/* crown.core.gather(options) -> what a grant may carry as `refresher` (candidate/refresher.h):
 * leases are refreshed and released by functions in Lua that ask for many of them at once, in one
 * task. Options: `ttl` and `delay` of each grant, in seconds; `most` leases in a batch;
 * `refresh` and `release`, functions that get a batch as soon as its first lease has come, and may
 * not wait themselves.
 *
 * batch:take() -> the states of all that have come, an array; from then on nobody joins.
 * batch:answer(epochs), or batch:answer(nil, message): for each state the epoch that it has, or
 * anything else where the oracle has to be asked; or why nothing is known. Only the first answer
 * counts. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "base/log.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "candidate/refresher.h"
#include "lua/error_text.h"

#define BATCH_TYPE "crown.gathered"

struct call {
    struct op op;
    struct list_node link; /* in its batch, until that is answered */
    int state;             /* registry reference, until it was taken */
    int place;             /* among those that were taken */
    lua_Number epoch;
    struct crown_error *error; /* why nothing is known */
};

/* One way to ask, and the batch that is still open. */
struct asking {
    int begin; /* registry reference */
    struct batch *open;
    int kept; /* registry reference of that one */
};

struct batch {
    struct asking *asking;
    struct list calls;
    size_t count;
};

struct gathering {
    struct refresher refresher;
    lua_State *L;
    size_t most;
    struct asking refreshes, releases;
};

static void close_batch(lua_State *L, struct batch *batch)
{
    struct asking *asking = batch->asking;
    if (asking->open != batch)
        return;
    asking->open = NULL;
    luaL_unref(L, LUA_REGISTRYINDEX, asking->kept);
}

static struct batch *open_batch(struct gathering *gathering, struct asking *asking)
{
    lua_State *L = gathering->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, asking->begin);
    struct batch *batch = lua_newuserdata(L, sizeof(*batch));
    *batch = (struct batch){.asking = asking};
    list_init(&batch->calls);
    luaL_getmetatable(L, BATCH_TYPE);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    asking->kept = luaL_ref(L, LUA_REGISTRYINDEX);
    asking->open = batch;
    if (lua_pcall(L, 1, 0, 0) == 0)
        return batch;
    log_error("leases are not asked for together: %s", lua_error_text(L));
    lua_pop(L, 1);
    close_batch(L, batch);
    return NULL;
}

static void call_free(struct call *call)
{
    free(call->error);
    free(call);
}

static void forget(struct op *op)
{
    call_free(container_of(op, struct call, op));
}

static void cancel(struct op *op)
{
    struct call *call = container_of(op, struct call, op);
    struct gathering *gathering = op->context;
    list_remove(&call->link);
    luaL_unref(gathering->L, LUA_REGISTRYINDEX, call->state);
    call_free(call);
}

/* The state is on top of L, and stays there. */
static struct op *join(struct gathering *gathering, struct asking *asking, lua_State *L)
{
    struct call *call = calloc(1, sizeof(*call));
    struct batch *batch = asking->open;
    if (call != NULL && batch == NULL)
        batch = open_batch(gathering, asking);
    if (batch == NULL || call == NULL) {
        free(call);
        return NULL;
    }
    op_init(&call->op, lua_vm_loop(lua_vm_of(L)), cancel);
    call->op.context = gathering;
    lua_pushvalue(L, -1);
    call->state = luaL_ref(L, LUA_REGISTRYINDEX);
    list_append(&batch->calls, &call->link);
    if (++batch->count == gathering->most)
        close_batch(L, batch);
    return &call->op;
}

static struct op *ask(struct refresher *base, const struct refresher_term *term, lua_State *L)
{
    (void)term;
    struct gathering *gathering = container_of(base, struct gathering, refresher);
    return join(gathering, &gathering->refreshes, L);
}

static struct op *release(struct refresher *base, lua_State *L)
{
    struct gathering *gathering = container_of(base, struct gathering, refresher);
    return join(gathering, &gathering->releases, L);
}

static enum refresher_answer look(struct refresher *base, struct op *op,
                                  const struct refresher_term *term, struct refresher_found *found)
{
    (void)base;
    struct call *call = container_of(op, struct call, op);
    enum refresher_answer answer =
        call->epoch == (lua_Number)term->epoch ? REFRESHER_SAME : REFRESHER_OTHER;
    if (call->error != NULL) {
        found->err = *call->error;
        answer = REFRESHER_UNKNOWN;
    }
    call_free(call);
    return answer;
}

static int batch_take(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    int count = 0;
    close_batch(L, batch);
    lua_createtable(L, (int)batch->count, 0);
    for (struct list_node *node = list_first(&batch->calls); node != NULL;
         node = list_next(&batch->calls, node)) {
        struct call *call = container_of(node, struct call, link);
        lua_rawgeti(L, LUA_REGISTRYINDEX, call->state);
        lua_rawseti(L, -2, ++count);
        luaL_unref(L, LUA_REGISTRYINDEX, call->state);
        call->state = LUA_NOREF;
        call->place = count;
    }
    return 1;
}

/* Without memory for the reason it is asked for alone. */
static struct crown_error *unknown(const char *message)
{
    struct crown_error *error = malloc(sizeof(*error));
    if (error != NULL)
        (void)error_set(error, ERROR_STORE, "%s", message);
    return error;
}

static int batch_answer(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    bool known = lua_istable(L, 2);
    const char *message = known ? NULL : luaL_optstring(L, 3, "no answer");
    struct list_node *node;
    while ((node = list_first(&batch->calls)) != NULL) {
        struct call *call = container_of(node, struct call, link);
        list_remove(node);
        if (known) {
            lua_rawgeti(L, 2, call->place);
            call->epoch = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
            lua_pop(L, 1);
        } else {
            call->error = unknown(message);
        }
        op_complete(&call->op);
    }
    return 0;
}

/* Whoever still waits has the election's own patience. */
static int batch_gc(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, BATCH_TYPE);
    struct list_node *node;
    while ((node = list_first(&batch->calls)) != NULL)
        list_remove(node);
    return 0;
}

static int function_field(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    luaL_checktype(L, -1, LUA_TFUNCTION);
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

static int gather(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    int refresh = function_field(L, "refresh"), give_back = function_field(L, "release");
    struct gathering *gathering = lua_newuserdata(L, sizeof(*gathering));
    *gathering = (struct gathering){
        .refresher = {.ttl_ns = time_field(L, 1, "ttl", 0),
                      .delay_ns = time_field(L, 1, "delay", 0),
                      .ask = ask,
                      .look = look,
                      .release = release,
                      .forget = forget},
        .L = lua_vm_state(lua_vm_of(L)),
        .most = (size_t)number_field(L, 1, "most", 1),
        .refreshes = {.begin = refresh},
        .releases = {.begin = give_back},
    };
    refresher_keep(L);
    return 1;
}

int bind_open_gather(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"take", batch_take}, {"answer", batch_answer}, {NULL, NULL}};
    bind_make_type(L, BATCH_TYPE, methods, batch_gc);
    lua_pushcfunction(L, gather);
    return 1;
}

/* crown.core.testing: a clock that only moves when a spec says so. */
#include <lauxlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "bind/bind.h"
#include "loop/loop.h"
#include "lua/task.h"

/* clock_virtual(on): freezes the clock of this runtime, or lets it run again. */
static int clock_virtual(lua_State *L)
{
    loop_set_virtual(lua_vm_loop(lua_vm_of(L)), lua_toboolean(L, 1));
    return 0;
}

/* clock_frozen() -> whether it is. real_now() -> the seconds of the clock that nobody freezes. */
static int clock_frozen(lua_State *L)
{
    lua_pushboolean(L, loop_is_virtual(lua_vm_loop(lua_vm_of(L))));
    return 1;
}

static int real_now(lua_State *L)
{
    lua_pushnumber(L, clock_seconds_from_ns(clock_boottime_ns()));
    return 1;
}

struct advance {
    struct op op;
    struct loop_job job;
    int64_t ns;
};

/* From the run queue, not from inside the task that asks: the loop resumes tasks one at a time. */
static void advance_run(struct loop_job *job)
{
    struct advance *advance = container_of(job, struct advance, job);
    loop_advance(advance->op.loop, advance->ns);
    op_complete(&advance->op);
}

static void advance_cancelled(struct op *op)
{
    struct advance *advance = container_of(op, struct advance, op);
    loop_unpost(op->loop, &advance->job);
}

/* clock_advance(seconds): moves the frozen clock on; everything that falls due in between has run
 * when it returns. */
static int clock_advance(lua_State *L)
{
    int64_t ns = clock_ns_from_seconds(luaL_checknumber(L, 1));
    struct loop *loop = lua_vm_loop(lua_vm_of(L));
    struct advance *advance = lua_newuserdata(L, sizeof(*advance));
    *advance = (struct advance){.job = {.run = advance_run}, .ns = ns};
    op_init(&advance->op, loop, advance_cancelled);
    loop_post(loop, &advance->job);
    task_keep(L, -1);
    return task_wait(L, &advance->op, TIME_NEVER, NULL);
}

static const luaL_Reg functions[] = {
    {"clock_virtual", clock_virtual},
    {"clock_advance", clock_advance},
    {"clock_frozen", clock_frozen},
    {"real_now", real_now},
    {NULL, NULL},
};

int bind_open_testing(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

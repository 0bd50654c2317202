#include "lua/guard.h"

#include <errno.h>
#include <lauxlib.h>
#include <luajit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lua/vm_state.h"

#define SLICE_NS (20 * NS_PER_MS) /* preempted between one and two of them */
#define OVERLONG_TICKS 25         /* half a second without being able to yield: an error */
#define GUARD_SIGNAL (SIGRTMIN + 3)

/* A signal handler has no other way to find it. */
static struct lua_vm *guarded_vm;

static void hook(lua_State *L, lua_Debug *where)
{
    struct lua_vm *vm = guarded_vm;
    if (vm == NULL || vm->running == NULL)
        return;
    if (L == task_state(vm->running) && lua_isyieldable(L)) {
        /* The thread itself will say the line of the instruction before. */
        (void)lua_getinfo(L, "Sl", where);
        (void)snprintf(vm->preempted_at, sizeof(vm->preempted_at), "%s:%d", where->short_src,
                       where->currentline);
        (void)lua_sethook(L, NULL, 0, 0);
        vm->preempting = 0;
        vm->overlong = 0;
        vm->preempted = true;
        (void)lua_yield(L, 0);
        return;
    }
    /* It stays armed, or a pcall around the error would go on for ever. */
    if (vm->overlong >= OVERLONG_TICKS)
        luaL_error(L, "ran for half a second without a wait where it cannot be interrupted "
                      "(inside table.sort, string.gsub, or a coroutine of its own)");
}

/* The thread has used up another slice of CPU time. */
static void tick(int signal)
{
    struct lua_vm *vm = guarded_vm;
    (void)signal;
    if (vm == NULL || vm->running == NULL)
        return;
    if (vm->ticked != vm->resumes) {
        vm->ticked = vm->resumes; /* this resume began within the slice */
        return;
    }
    vm->overlong = vm->overlong + 1;
    if (vm->preempting)
        return;
    vm->preempting = 1;
    /* Count hooks alone may yield: the manual of lua_yield. */
    (void)lua_sethook(vm->L, hook, LUA_MASKCOUNT, 1);
}

int guard_open(struct lua_vm *vm, struct crown_error *err)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = GUARD_SIGNAL};
    const struct itimerspec period = {{0, SLICE_NS}, {0, SLICE_NS}};
    /* CPU time of this thread: an idle runtime gets no signal, and a starved host preempts nobody.
     */
    if (sigaction(GUARD_SIGNAL, &action, NULL) < 0 ||
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &vm->slice_timer) < 0 ||
        timer_settime(vm->slice_timer, 0, &period, NULL) < 0)
        return error_set_errno(err, errno, "guard the loop against Lua that never waits");
    guarded_vm = vm;
    vm->guarded = true;
    return 0;
}

void guard_close(struct lua_vm *vm)
{
    if (!vm->guarded)
        return;
    guarded_vm = NULL;
    vm->guarded = false;
    (void)timer_delete(vm->slice_timer); /* fails for wrong arguments only */
}

void guard_enter(struct lua_vm *vm)
{
    vm->resumes = vm->resumes + 1;
    vm->preempted = false;
}

void guard_leave(struct lua_vm *vm)
{
    vm->overlong = 0;
    if (!vm->preempting)
        return;
    vm->preempting = 0;
    (void)lua_sethook(vm->L, NULL, 0, 0);
}

static int refuse_sethook(lua_State *L)
{
    if (lua_isnoneornil(L, 1))
        return 0; /* taking a hook away is what happens anyway */
    return luaL_error(L, "debug.sethook: the hook belongs to crown-lua, which uses it to keep one "
                         "task from holding up the others");
}

void guard_replace_sethook(lua_State *L)
{
    lua_getglobal(L, "debug");
    lua_pushcfunction(L, refuse_sethook);
    lua_setfield(L, -2, "sethook");
    lua_pop(L, 1);
}

#include "lua/guard.h"

#include <errno.h>
#include <lauxlib.h>
#include <luajit.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "lua/host_state.h"

#define SLICE_NS (20 * NS_PER_MS) /* preempted between one and two of them */
#define OVERLONG_TICKS 25         /* half a second without being able to yield: an error */
#define GUARD_SIGNAL (SIGRTMIN + 3)

/* A signal handler has no other way to find it. */
static struct lua_host *guarded_host;

static void hook(lua_State *L, lua_Debug *where)
{
    struct lua_host *host = guarded_host;
    (void)where;
    if (host == NULL || host->running == NULL)
        return;
    if (L == task_thread(host->running) && lua_isyieldable(L)) {
        (void)lua_sethook(L, NULL, 0, 0);
        host->preempting = 0;
        host->overlong = 0;
        host->preempted = true;
        (void)lua_yield(L, 0);
        return;
    }
    /* It stays armed, or a pcall around the error would go on for ever. */
    if (host->overlong >= OVERLONG_TICKS)
        luaL_error(L, "ran for half a second without a wait where it cannot be interrupted "
                      "(inside table.sort, string.gsub, or a coroutine of its own)");
}

/* The thread has used up another slice of CPU time. */
static void tick(int signal)
{
    struct lua_host *host = guarded_host;
    (void)signal;
    if (host == NULL || host->running == NULL)
        return;
    if (host->ticked != host->resumes) {
        host->ticked = host->resumes; /* this resume began within the slice */
        return;
    }
    host->overlong = host->overlong + 1;
    if (host->preempting)
        return;
    host->preempting = 1;
    /* Count hooks alone may yield: the manual of lua_yield. */
    (void)lua_sethook(host->L, hook, LUA_MASKCOUNT, 1);
}

int guard_open(struct lua_host *host, struct crown_error *err)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = GUARD_SIGNAL};
    const struct itimerspec period = {{0, SLICE_NS}, {0, SLICE_NS}};
    /* CPU time of this thread: an idle runtime gets no signal, and a starved host preempts nobody.
     */
    if (sigaction(GUARD_SIGNAL, &action, NULL) < 0 ||
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &host->slice_timer) < 0 ||
        timer_settime(host->slice_timer, 0, &period, NULL) < 0)
        return error_set_errno(err, errno, "guard the loop against Lua that never waits");
    guarded_host = host;
    host->guarded = true;
    return 0;
}

void guard_close(struct lua_host *host)
{
    if (!host->guarded)
        return;
    guarded_host = NULL;
    host->guarded = false;
    (void)timer_delete(host->slice_timer); /* fails for wrong arguments only */
}

void guard_enter(struct lua_host *host)
{
    host->resumes = host->resumes + 1;
    host->preempted = false;
}

void guard_leave(struct lua_host *host)
{
    host->overlong = 0;
    if (!host->preempting)
        return;
    host->preempting = 0;
    (void)lua_sethook(host->L, NULL, 0, 0);
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

#include "lua/task.h"

#include <assert.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "lua/error_text.h"
#include "lua/guard.h"
#include "lua/traceback.h"
#include "lua/vm_state.h"

#define SLOW_SLICES 7 /* of about 30 ms: worth a word in the log */

struct task {
    struct lua_vm *vm;
    struct lua_thread thread;
    struct scope_member member;
    struct list_node link; /* in the vm */
    struct loop_job job;   /* to be resumed */
    struct loop_deadline deadline;
    struct op *op; /* what it waits for; NULL while it waits for the time alone, or not at all */
    task_push *push;
    task_done *done;
    void *context;
    struct task **handle; /* of Lua's userdata, which outlives the task */
    int kept;             /* registry reference of what the wait needs; LUA_NOREF */
    int nargs;            /* of the first resume */
    unsigned slices;      /* without a wait */
    bool waiting, timed_out;
    bool returned;  /* its thread can serve another task */
    bool cancelled; /* politely */
    bool dropped;   /* while it was running: it ends at its next wait */
};

/* Kept for the next tasks: most are short, a new thread costs more than they do, and many run at
 * once where elections are many. Where thousands have run at once they may do so again: so many are
 * kept, up to a bound, the second time. */
#define IDLE_THREADS 512
#define IDLE_THREADS_MOST 2048 /* about a kilobyte each */

void task_open(struct lua_vm *vm)
{
    const char *torture = getenv("CROWN_TORTURE");
    vm->collect = torture != NULL && strcmp(torture, "gc") == 0;
}

void task_close(struct lua_vm *vm)
{
    free(vm->idle); /* the threads go with the Lua state */
    vm->idle = NULL;
    vm->idle_count = vm->idle_room = 0;
}

/* A thread for a new task: one that is idle, or a new one. */
static struct lua_thread take_thread(lua_State *L, struct lua_vm *vm)
{
    if (vm->idle_count > 0)
        return vm->idle[--vm->idle_count];
    struct lua_thread thread = {.L = lua_newthread(L)};
    thread.anchor = luaL_ref(L, LUA_REGISTRYINDEX);
    return thread;
}

static unsigned idle_most(const struct lua_vm *vm)
{
    unsigned burst = vm->tidy.burst < IDLE_THREADS_MOST ? vm->tidy.burst : IDLE_THREADS_MOST;
    return burst > IDLE_THREADS ? burst : IDLE_THREADS;
}

/* @return whether there is room for one more. */
static bool has_room(struct lua_vm *vm)
{
    if (vm->idle_count < vm->idle_room)
        return true;
    unsigned room = vm->idle_room > 0 ? vm->idle_room * 2 : 64;
    struct lua_thread *idle = realloc(vm->idle, room * sizeof(*idle));
    if (idle == NULL)
        return false;
    vm->idle = idle;
    vm->idle_room = room;
    return true;
}

/* Keeps the thread of a task that ended well, and leaves any other one to the collector. */
static void leave_thread(struct task *task)
{
    struct lua_vm *vm = task->vm;
    if (!task->returned || vm->idle_count >= idle_most(vm) || !has_room(vm)) {
        luaL_unref(vm->L, LUA_REGISTRYINDEX, task->thread.anchor);
        return;
    }
    lua_settop(task->thread.L, 0);
    vm->idle[vm->idle_count++] = task->thread;
}

static void release_kept(struct task *task)
{
    luaL_unref(task->vm->L, LUA_REGISTRYINDEX, task->kept);
    task->kept = LUA_NOREF;
}

static void task_free(struct task *task)
{
    struct lua_vm *vm = task->vm;
    if (task->op != NULL)
        op_cancel(task->op);
    loop_at_cancel(vm->loop, &task->deadline);
    loop_unpost(vm->loop, &task->job);
    list_remove(&task->link);
    if (task->handle != NULL)
        *task->handle = NULL;
    leave_thread(task);
    release_kept(task);
    scope_leave(&task->member);
    free(task);
    tidy_ended(vm);
}

void task_drop(struct task *task)
{
    if (task == task->vm->running)
        task->dropped = true;
    else
        task_free(task);
}

static void task_scope_ended(struct scope_member *member)
{
    task_drop(container_of(member, struct task, member));
}

static const struct scope_kind task_kind = {.name = "task", .end = task_scope_ended};

void task_drop_all(struct lua_vm *vm)
{
    struct list_node *next;
    vm->running = NULL;
    for (struct list_node *node = list_first(&vm->tasks); node != NULL; node = next) {
        next = list_next(&vm->tasks, node);
        task_free(container_of(node, struct task, link));
    }
}

/* Ends a task: the outcome's values are on top of its stack. */
static void task_end(struct task *task, enum task_outcome outcome, int nresults)
{
    scope_leave(&task->member); /* first: `done` may close the scope */
    if (task->done != NULL)
        task->done(task, outcome, nresults, task->context);
    else if (outcome == TASK_FAILED)
        log_error("a task failed: %s", lua_error_text(task->thread.L));
    task_free(task);
}

/* Replaces the error on top by a text with the task's traceback. A table with a message of its own
 * stays as it is. */
static void add_traceback(struct task *task)
{
    lua_State *L = task->thread.L;
    if (lua_type(L, -1) != LUA_TSTRING)
        return;
    lua_add_traceback(L);
}

static void push_failure(lua_State *L, const char *message, const char *code)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_pushstring(L, code);
}

static int push_results(struct task *task)
{
    struct op *op = task->op;
    task->op = NULL;
    task->waiting = false;
    loop_at_cancel(task->vm->loop, &task->deadline);
    if (task->cancelled) {
        push_failure(task->thread.L, "cancelled", "cancelled");
        return 3;
    }
    if (task->timed_out) {
        task->timed_out = false;
        if (op == NULL)
            return 0; /* a sleep that ended as it should */
        push_failure(task->thread.L, "timeout", "timeout");
        return 3;
    }
    return task->push != NULL && op != NULL ? task->push(task->thread.L, op) : 0;
}

static void warn_slow(struct task *task)
{
    if (++task->slices != SLOW_SLICES)
        return;
    lua_State *L = task->thread.L;
    luaL_traceback(L, L, "", 0);
    const char *text = lua_pushfstring(L, "%s: a task has run for 200 ms without a wait%s",
                                       task->vm->preempted_at, lua_tostring(L, -1));
    log_event(task->vm->alone ? LOG_DEBUG : LOG_WARN, text, NULL, 0);
    lua_pop(L, 2);
}

void task_alone(struct lua_vm *vm)
{
    vm->alone = true;
}

/* The only place that resumes Lua. */
static void task_resume(struct task *task)
{
    struct lua_vm *vm = task->vm;
    int nargs = task->nargs;
    task->nargs = 0;
    assert(vm->running == NULL);
    if (task->waiting)
        nargs = push_results(task);
    release_kept(task);
    if (vm->collect)
        (void)lua_gc(vm->L, LUA_GCCOLLECT, 0);
    vm->running = task;
    guard_enter(vm);
    int status = lua_resume(task->thread.L, nargs);
    guard_leave(vm);
    vm->running = NULL;
    if (task->dropped) {
        task->op = NULL; /* task_wait has cancelled it already */
        task_free(task);
    } else if (status == LUA_YIELD && vm->preempted) {
        warn_slow(task);
        loop_defer(vm->loop, &task->job);
    } else if (status == LUA_YIELD && task->waiting) {
        task->slices = 0;
    } else if (status == LUA_YIELD) {
        lua_pushliteral(task->thread.L,
                        "coroutine.yield outside a coroutine of one's own: to wait, "
                        "call crown.sleep or another function that waits");
        add_traceback(task);
        task_end(task, TASK_FAILED, 1);
    } else if (status == 0) {
        task->returned = true;
        task_end(task, TASK_DONE, lua_gettop(task->thread.L));
    } else if (status == LUA_ERRMEM) {
        log_error("Lua is out of memory");
        _Exit(70); /* crash-only: keepers and supervisor see to the rest */
    } else {
        add_traceback(task);
        task_end(task, TASK_FAILED, 1);
    }
}

static void task_run(struct loop_job *job)
{
    task_resume(container_of(job, struct task, job));
}

/* The op is done; we are on the run queue already. */
static void task_woken(struct op *op)
{
    task_resume(op->waiter);
}

static void task_due(struct loop_deadline *deadline)
{
    struct task *task = container_of(deadline, struct task, deadline);
    task->timed_out = true;
    if (task->op != NULL)
        op_cancel(task->op);
    loop_post(task->vm->loop, &task->job);
}

struct task *task_spawn(struct lua_vm *vm, lua_State *from, int nargs, struct scope *scope,
                        task_done *done, void *context)
{
    if (scope == NULL)
        scope = task_scope_here(from);
    struct task *task = scope_closed(scope) ? NULL : calloc(1, sizeof(*task));
    if (task == NULL) {
        lua_pop(from, nargs + 1);
        return NULL;
    }
    (void)scope_enter(scope, &task->member, &task_kind); /* it is open */
    task->vm = vm;
    task->done = done;
    task->context = context;
    task->nargs = nargs;
    task->job.run = task_run;
    task->deadline.fire = task_due;
    task->kept = LUA_NOREF;
    task->thread = take_thread(from, vm);
    lua_xmove(from, task->thread.L, nargs + 1);
    list_append(&vm->tasks, &task->link);
    tidy_began(vm);
    loop_post(vm->loop, &task->job);
    return task;
}

void task_keep(lua_State *L, int index)
{
    struct task *task = lua_vm_of(L)->running;
    if (task == NULL || L != task->thread.L)
        return; /* task_wait is about to refuse */
    release_kept(task);
    lua_pushvalue(L, index);
    task->kept = luaL_ref(L, LUA_REGISTRYINDEX);
}

int task_wait(lua_State *L, struct op *op, int64_t until_ns, task_push *push)
{
    struct lua_vm *vm = lua_vm_of(L);
    struct task *task = vm->running;
    const char *refusal = NULL;
    if (task == NULL)
        refusal = "this has to wait, which only a task can: call it from crown.spawn";
    else if (L != task->thread.L)
        refusal = "this has to wait, which a coroutine of one's own cannot: use crown.spawn "
                  "instead of coroutine.create or coroutine.wrap";
    else if (!lua_isyieldable(L))
        refusal = "this has to wait, which is not possible here: inside table.sort, string.gsub, "
                  "require, or another C function that calls Lua";
    if (refusal != NULL || task->cancelled || task->dropped) {
        if (op != NULL)
            op_cancel(op);
        if (refusal != NULL)
            return luaL_error(L, "%s", refusal);
    }
    if (task->dropped)
        return lua_yield(L, 0);
    if (task->cancelled) {
        push_failure(L, "cancelled", "cancelled");
        return 3;
    }
    task->op = op;
    task->push = push;
    task->waiting = true;
    if (op != NULL) {
        op->wake = task_woken;
        op->waiter = task;
    }
    loop_at(vm->loop, &task->deadline, until_ns);
    return lua_yield(L, 0);
}

void task_cancel(struct task *task)
{
    if (task->cancelled)
        return;
    task->cancelled = true;
    if (!task->waiting)
        return;
    if (task->op != NULL)
        op_cancel(task->op);
    loop_post(task->vm->loop, &task->job);
}

struct task *task_running(lua_State *L)
{
    return lua_vm_of(L)->running;
}

lua_State *task_state(const struct task *task)
{
    return task->thread.L;
}

struct scope *task_vm_scope(struct lua_vm *vm)
{
    return vm->scope;
}

/* The collector stands still while it calls a finalizer. Where the user has stopped it, code that
 * is none is told by its task, which may wait. */
bool task_finalizes(lua_State *L)
{
    const struct lua_vm *vm = lua_vm_of(L);
    const struct task *task = vm->running;
    return lua_gc(L, LUA_GCISRUNNING, 0) == 0 && !vm->closing &&
           (task == NULL || task->thread.L != L || !lua_isyieldable(L));
}

struct scope *task_scope_here(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);
    if (task_finalizes(L))
        return vm->closed;
    return vm->running != NULL ? vm->running->member.scope : vm->scope;
}

void task_set_handle(struct task *task, struct task **handle)
{
    task->handle = handle;
}

/**
 * Lua on the loop: every oracle call, handler and crown.spawn is a task, a coroutine that C resumes
 * in exactly one place (task_resume in task.c). A C function that has to wait ends with
 * `return task_wait(L, op, until, push)`; the values that `push` leaves on the stack become its
 * results.
 */
#ifndef CROWN_LUA_TASK_H
#define CROWN_LUA_TASK_H

#include <lua.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "base/scope.h"
#include "loop/op.h"

struct lua_vm; /* lua/vm.h */
struct task;

enum task_outcome {
    TASK_DONE,      /* returned: `nresults` values are on top of `task_state(task)` */
    TASK_FAILED,    /* raised: the message with the task's traceback is on top */
    TASK_CANCELLED, /* dropped: never resumed again */
};

/** Called once when a task ends by itself or by error, after it has left its scope; not for tasks
 * that were dropped, by task_drop or because their scope was closed. From the run queue. */
typedef void task_done(struct task *task, enum task_outcome outcome, int nresults, void *context);

/**
 * Makes a task of the function and `nargs` arguments on top of `from` (pops them) and queues it; it
 * first runs from the run queue. Raises nothing. It is a member of its scope: when that is closed,
 * it is dropped; one that is running right then, at its next wait or preemption.
 * @param scope may be NULL: the scope of the task that runs now, else the vm's own scope.
 * @param done may be NULL: then an error is logged with its traceback.
 * @return the task, or NULL when the scope is closed or memory is out. Owned by the vm; valid
 * until `done` was called, or until dropped.
 */
struct task *task_spawn(struct lua_vm *vm, lua_State *from, int nargs, struct scope *scope,
                        task_done *done, void *context);

/** Pushes the results of a completed operation. @return how many. */
typedef int task_push(lua_State *L, struct op *op);

/**
 * Suspends the running task until the op completes or `until_ns` comes. Use in tail position only.
 * Raises where L is not the running task ("wait inside a coroutine: use crown.spawn") or may not
 * yield here. At `until_ns` the op is cancelled and the results are nil, "timeout…", "timeout". In
 * a task that was asked to end (task_cancel) every wait returns nil, "cancelled", "cancelled" at
 * once.
 * @param op NULL: wait for the time alone.
 * @param push NULL: no results.
 */
int task_wait(lua_State *L, struct op *op, int64_t until_ns, task_push *push);

/**
 * Keeps the value at `index` alive during the wait that follows: a C function that yields loses its
 * arguments, and what the op needs must not be collected meanwhile. Call it right before task_wait.
 */
void task_keep(lua_State *L, int index);

/** From now on tasks hold up no election: that one computes for long is told at level debug only.
 */
void task_alone(struct lua_vm *vm);

/** Polite: the current wait, and each later one, returns nil, "cancelled". */
void task_cancel(struct task *task);

/** Final: cancels the pending op, drops the thread; `done` is not called. A dropped coroutine runs
 * no clean-up. */
void task_drop(struct task *task);

/** @return the task that is running on L's vm right now, or NULL. */
struct task *task_running(lua_State *L);
lua_State *task_state(const struct task *task);

/** @return the scope of the task that runs now, or the vm's where none does: what is started here
 * belongs to it. A closed one in a finalizer, which runs in the middle of anybody's task. */
struct scope *task_scope_here(lua_State *L);

/** @return whether L runs a finalizer (__gc, ffi.gc) while there may be terms. */
bool task_finalizes(lua_State *L);

/** @return the scope of what lives as long as the vm. */
struct scope *task_vm_scope(struct lua_vm *vm);

/** `*handle` becomes NULL when the task ends; NULL: nobody has a handle any more. */
void task_set_handle(struct task *task, struct task **handle);

#endif

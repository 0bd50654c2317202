/**
 * The inside of a Lua vm, shared by vm.c, task.c and guard.c. Nobody else includes this.
 */
#ifndef CROWN_LUA_VM_STATE_H
#define CROWN_LUA_VM_STATE_H

#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "lua/task.h"
#include "lua/tidy.h"
#include "lua/vm.h"

/* A thread of Lua; the registry keeps it under its anchor, a reference. */
struct lua_thread {
    lua_State *L;
    int anchor;
};

struct lua_vm {
    lua_State *L;
    struct slabs *slabs; /* NULL: this LuaJIT takes its memory from nobody */
    struct loop *loop;
    void *owner;
    struct list tasks;    /* all of them */
    struct scope *scope;  /* of what lives as long as the vm */
    bool closing;         /* no term is left: finalizers may tidy up as they like */
    struct scope *closed; /* never open: what a finalizer would start enters it in vain */
    struct task *running;
    struct lua_thread *idle; /* threads that wait for a task */
    unsigned idle_count, idle_room;
    struct tidy tidy;
    bool collect; /* torture: a full collection before each resume */
    bool alone;   /* tasks hold up nobody: nothing is told of one that computes for long */
    /* guard.c; read by a signal handler */
    timer_t slice_timer;
    bool guarded;
    volatile sig_atomic_t
        resumes; /* counts resumes: a tick that sees the same one twice preempts */
    volatile sig_atomic_t ticked;
    volatile sig_atomic_t preempting; /* the hook is set */
    volatile sig_atomic_t overlong; /* ticks in a row that found the running task unable to yield */
    bool preempted;                 /* the yield that just came was the hook's */
    char preempted_at[LUA_IDSIZE + 16]; /* the file and the line of it */
};

/* task.c */
void task_open(struct lua_vm *vm);
void task_close(struct lua_vm *vm);
void task_drop_all(struct lua_vm *vm);

#endif

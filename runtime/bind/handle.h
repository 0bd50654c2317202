/**
 * A thing that a task has opened and that calls back: a watch, a listener, a subscription. While it
 * is open it keeps itself and its function alive, and belongs to the scope that opened it: with
 * that it is closed, and its function runs in tasks of that scope.
 */
#ifndef CROWN_BIND_HANDLE_H
#define CROWN_BIND_HANDLE_H

#include <lua.h>
#include <stdbool.h>

#include "base/scope.h"
#include "lua/task.h"
#include "lua/vm.h"

/** Embed it in the userdata; zero-initialise before first use. */
struct handle {
    struct scope_member member;
    struct lua_vm *vm;
    int self, function; /* registry references */
    bool open;
};

/**
 * Opens the handle, once what it watches is there.
 * @param self index of the userdata.
 * @param function index of what it calls back.
 * @param scope that it belongs to; open: scope_closed was asked before anything was made.
 * @param kind whose `end` closes what it watches, then the handle.
 */
void handle_open(lua_State *L, struct handle *handle, int self, int function, struct scope *scope,
                 const struct scope_kind *kind);

/** @return the main state, with the function on its stack: push its arguments, then handle_call. */
lua_State *handle_push(struct handle *handle);
/** Calls the function in a task of the handle's scope. */
void handle_call(struct handle *handle, int nargs);
/** The same, and hears how it ended. @return false where the scope is over. */
bool handle_ask(struct handle *handle, int nargs, task_done *done, void *context);
/** As handle_call, with `nargs` values from the top of L (popped). */
void handle_call_from(lua_State *L, struct handle *handle, int nargs);

/** Lets go of function and scope. Harmless for one that is closed. */
void handle_close(struct handle *handle);

/** Pushes nil, message, code for a scope that is over. @return 3. */
int push_scope_over(lua_State *L);

#endif

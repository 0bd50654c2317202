/**
 * The Lua world: one LuaJIT state with the compiler off (a hook can then preempt any Lua loop, and
 * the JIT buys oracle-like code nothing), all standard libraries, the embedded modules, and the
 * default paths.
 */
#ifndef CROWN_LUA_VM_H
#define CROWN_LUA_VM_H

#include <lua.h>
#include <stddef.h>

#include "base/error.h"
#include "loop/loop.h"

struct lua_vm;

/** One C table of bindings: `open` pushes it. */
struct lua_module {
    const char *name; /* "crown.core.tcp" */
    lua_CFunction open;
};

/**
 * Makes the state. `modules` (ended by {NULL, NULL}) go to package.preload; embedded Lua modules
 * are found before any file.
 * @param owner what bindings are to reach (struct host *): lua_vm_owner.
 * @return NULL with `err`.
 */
struct lua_vm *lua_vm_new(struct loop *loop, const struct lua_module *modules, void *owner,
                          struct crown_error *err);

/** Drops all tasks, then closes the state. */
void lua_vm_free(struct lua_vm *vm);

/**
 * Writes what Lua is running now, innermost first: "find < app.lua:18 < app.lua:30", or that it is
 * not. Allocates nothing: for a signal handler in a process that is about to be killed, since the
 * stack may be in the middle of a change.
 */
void lua_vm_describe(const struct lua_vm *vm, char *text, size_t size);

lua_State *lua_vm_state(struct lua_vm *vm);
struct loop *lua_vm_loop(struct lua_vm *vm);
void *lua_vm_owner(struct lua_vm *vm);
struct lua_vm *lua_vm_of(lua_State *L);

#endif

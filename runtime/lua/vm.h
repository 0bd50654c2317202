/**
 * The Lua world: one LuaJIT state with the compiler off (a hook can then preempt any Lua loop, and
 * the JIT buys oracle-like code nothing), all standard libraries, the embedded modules, and the
 * default paths.
 */
#ifndef CROWN_LUA_VM_H
#define CROWN_LUA_VM_H

#include <lua.h>

#include "base/error.h"
#include "loop/loop.h"

struct lua_host;

/** One C table of bindings: `open` pushes it. */
struct lua_module {
    const char *name; /* "crown.core.tcp" */
    lua_CFunction open;
};

/**
 * Makes the state. `modules` (ended by {NULL, NULL}) go to package.preload; embedded Lua modules
 * are found after the path ("a module of the same name on the path wins").
 * @param owner whatever the host wants bindings to reach (struct host *): lua_host_owner.
 * @return NULL with `err`.
 */
struct lua_host *lua_host_new(struct loop *loop, const struct lua_module *modules, void *owner,
                              struct crown_error *err);

/** Drops all tasks, then closes the state. */
void lua_host_free(struct lua_host *host);

lua_State *lua_host_state(struct lua_host *host);
struct loop *lua_host_loop(struct lua_host *host);
void *lua_host_owner(struct lua_host *host);
struct lua_host *lua_host_of(lua_State *L);

#endif

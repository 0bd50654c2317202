/**
 * Where `require` finds what is inside the binary.
 */
#ifndef CROWN_LUA_MODULES_H
#define CROWN_LUA_MODULES_H

#include <lua.h>

#include "lua/embedded.h"

/**
 * Adds the embedded modules to package.loaders, behind package.preload and before any file: one of
 * their names, in the working directory or of another version, is not run. They are loaded as
 * bytecode where this LuaJIT compiles `sample` to the bytecode that stands beside it, else as
 * source. Raises where memory is out.
 */
void modules_open(lua_State *L, const struct embedded_module *sample);

#endif

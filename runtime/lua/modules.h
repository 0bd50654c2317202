/**
 * Where `require` finds what is inside the binary, and when a file of the user's comes before it.
 */
#ifndef CROWN_LUA_MODULES_H
#define CROWN_LUA_MODULES_H

#include <lua.h>

#include "lua/embedded.h"

/**
 * Adds the embedded modules to package.loaders. A file of the same name on package.path wins; they
 * come before C libraries. They are loaded as bytecode where this LuaJIT compiles `sample` to the
 * bytecode that stands beside it, else as source. Raises where memory is out.
 */
void modules_open(lua_State *L, const struct embedded_module *sample);

#endif

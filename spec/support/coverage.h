/* Included before everything by `make coverage`: what a process has executed is written down also
 * where it ends by _exit, and the lines of Lua are counted, whose hook the runtime keeps for
 * itself. */
#ifndef CROWN_SPEC_SUPPORT_COVERAGE_H
#define CROWN_SPEC_SUPPORT_COVERAGE_H

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <unistd.h>

void coverage_write(void);
lua_State *coverage_newstate(void);
int coverage_sethook(lua_State *L, lua_Hook hook, int mask, int count);

#ifndef COVERAGE_ITSELF
#define _exit(code) (coverage_write(), (_exit)(code))
#undef luaL_newstate
#define luaL_newstate() coverage_newstate()
#define lua_sethook(L, hook, mask, count) coverage_sethook(L, hook, mask, count)
#endif

#endif

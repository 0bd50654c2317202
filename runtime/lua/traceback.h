/**
 * Where an error of the user's code came from.
 */
#ifndef CROWN_LUA_TRACEBACK_H
#define CROWN_LUA_TRACEBACK_H

#include <lua.h>

/**
 * Replaces the text on top by itself and the stack below it: the frames of the user's own code. An
 * error in which none of that takes part is one of ours, and shows all frames.
 */
void lua_add_traceback(lua_State *L);

#endif

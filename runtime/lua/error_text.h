/**
 * What an error says, as a text: Lua raises values of any kind.
 */
#ifndef CROWN_LUA_ERROR_TEXT_H
#define CROWN_LUA_ERROR_TEXT_H

#include <lua.h>

/**
 * Replaces the error on top by a text for a person: itself, its field `message`, or what its
 * __tostring says. Raises nothing, whatever a metamethod does.
 * @return the text, which lives as long as it is on the stack.
 */
const char *lua_error_text(lua_State *L);

#endif

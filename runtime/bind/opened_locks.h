/**
 * Which lock files the processes of this user have open, also those whose path names another file
 * by now, or none.
 */
#ifndef CROWN_BIND_OPENED_LOCKS_H
#define CROWN_BIND_OPENED_LOCKS_H

#include <lua.h>

/** opened() -> a table: path of the descriptor -> path of the file, with " (deleted)" behind it
 * where it was taken away; or nil, message. */
int push_opened_locks(lua_State *L);

#endif

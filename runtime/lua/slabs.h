/**
 * Where the Lua heap's memory comes from. Blocks of one size stand together: so the small ones have
 * no header, and what thousands of tasks throw away leaves whole chunks that are free, and not
 * holes between what stays. Those go back to the system.
 */
#ifndef CROWN_LUA_SLABS_H
#define CROWN_LUA_SLABS_H

#include <lua.h>
#include <stddef.h>

struct slabs;

/** @return NULL when memory is out. */
struct slabs *slabs_new(void);
/** When the Lua state that used it is closed. */
void slabs_free(struct slabs *slabs);

/** A lua_Alloc. @param slabs of slabs_new. */
void *slabs_allocate(void *slabs, void *old, size_t old_size, size_t size);

/** Gives back to the system what is free. */
void slabs_trim(struct slabs *slabs);

#endif

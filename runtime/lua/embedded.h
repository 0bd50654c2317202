/**
 * The Lua modules inside the binary, as source: bytecode is tied to one build of LuaJIT, which is a
 * shared library.
 */
#ifndef CROWN_LUA_EMBEDDED_H
#define CROWN_LUA_EMBEDDED_H

#include <stddef.h>

struct embedded_module {
    const char *name; /* "crown.elect" */
    const char *file; /* "crown/elect.lua", for messages and tracebacks */
    const char *source;
    size_t size;
};

/** Made by tools/embed.lua; ends with a NULL name. */
extern const struct embedded_module embedded_modules[];

#endif

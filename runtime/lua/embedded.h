/**
 * The Lua modules inside the binary, twice: as bytecode, which loads in a tenth of the time, and as
 * source, for a LuaJIT that is not the one of the build: it is a shared library.
 */
#ifndef CROWN_LUA_EMBEDDED_H
#define CROWN_LUA_EMBEDDED_H

#include <stddef.h>

struct embedded_module {
    const char *name; /* "crown.elect" */
    const char *file; /* "crown/elect.lua", for messages and tracebacks */
    const char *source;
    size_t size;
    const char *code; /* with line numbers and names, as string.dump gives it */
    size_t code_size;
};

/** Made by tools/embed.lua; ends with a NULL name. */
extern const struct embedded_module embedded_modules[];

/** A sample of all that there is in Lua, to see whether two LuaJITs agree. */
extern const struct embedded_module embedded_sample;

#endif

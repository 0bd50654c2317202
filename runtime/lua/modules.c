#include "lua/modules.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct embedded_module *find_module(const char *name)
{
    const struct embedded_module *module = embedded_modules;
    while (module->name != NULL && strcmp(module->name, name) != 0)
        module++;
    return module->name != NULL ? module : NULL;
}

/* --- bytecode, where this LuaJIT would make the same */

struct comparison {
    const char *expected;
    size_t left;
};

static int compare(lua_State *L, const void *piece, size_t size, void *context)
{
    struct comparison *comparison = context;
    (void)L;
    if (size > comparison->left || memcmp(piece, comparison->expected, size) != 0)
        return 1;
    comparison->expected += size;
    comparison->left -= size;
    return 0;
}

/* LuaJIT is a shared library: another one than that of the build may run us, and what its bytecode
 * means is its own affair. It is the same where a sample of everything compiles to the same. */
static bool same_bytecode(lua_State *L, const struct embedded_module *sample)
{
    struct comparison comparison = {sample->code, sample->code_size};
    bool same = luaL_loadbuffer(L, sample->source, sample->size, "@sample") == 0 &&
                lua_dump(L, compare, &comparison) == 0 && comparison.left == 0;
    lua_pop(L, 1);
    return same;
}

/* --- what `require` asks */

/* Upvalue 1: whether bytecode can be loaded. */
static int load_module(lua_State *L, const struct embedded_module *module)
{
    char chunk[128];
    (void)snprintf(chunk, sizeof(chunk), "@%s", module->file);
    bool compiled = lua_toboolean(L, lua_upvalueindex(1));
    if (luaL_loadbuffer(L, compiled ? module->code : module->source,
                        compiled ? module->code_size : module->size, chunk) != 0)
        return lua_error(L);
    return 1;
}

static int search_embedded(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct embedded_module *module = find_module(name);
    if (module != NULL)
        return load_module(L, module);
    lua_pushfstring(L, "\n\tno module '%s' inside crown-lua", name);
    return 1;
}

void modules_open(lua_State *L, const struct embedded_module *sample)
{
    /* package.preload is the first, then the path: luaopen_package. */
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "loaders");
    for (int i = (int)lua_objlen(L, -1); i > 1; i--) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushboolean(L, same_bytecode(L, sample));
    lua_pushcclosure(L, search_embedded, 1);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 2);
}

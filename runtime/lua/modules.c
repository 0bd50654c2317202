#include "lua/modules.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OURS "crown" /* all names of embedded modules begin so */

static const char checked_key; /* registry: the package.path without a file that could win */

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

/* Whether a template of the path, "./?.lua", leads to a folder or a file with our name. */
static bool leads_to_ours(const char *template, size_t size)
{
    char place[PATH_MAX];
    const char *mark = memchr(template, '?', size);
    if (mark == NULL)
        return true; /* a file for any name */
    int folder = (int)(mark - template), rest = (int)(size - (size_t)folder - 1);
    int length = snprintf(place, sizeof(place), "%.*s" OURS, folder, template);
    if (length >= (int)sizeof(place) || access(place, F_OK) == 0)
        return true;
    length = snprintf(place, sizeof(place), "%.*s" OURS "%.*s", folder, template, rest, mark + 1);
    return length >= (int)sizeof(place) || access(place, F_OK) == 0;
}

static bool path_leads_to_ours(const char *path)
{
    while (*path != '\0') {
        size_t size = strcspn(path, ";");
        if (size > 0 && leads_to_ours(path, size))
            return true;
        path += size + (path[size] != '\0');
    }
    return false;
}

/* Whether no file can win on the path as it is now: then each of our modules is spared a look at
 * all of its places. */
static bool path_is_free_of_ours(lua_State *L)
{
    int top = lua_gettop(L);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    const char *path = lua_tostring(L, -1);
    lua_pushlightuserdata(L, (void *)&checked_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    bool is_free = lua_rawequal(L, -1, -2);
    if (!is_free && path != NULL && !path_leads_to_ours(path)) {
        lua_pushlightuserdata(L, (void *)&checked_key);
        lua_pushvalue(L, -3);
        lua_rawset(L, LUA_REGISTRYINDEX);
        is_free = true;
    }
    lua_settop(L, top);
    return is_free;
}

static int search_first(lua_State *L)
{
    const struct embedded_module *module = find_module(luaL_checkstring(L, 1));
    return module != NULL && path_is_free_of_ours(L) ? load_module(L, module) : 0;
}

static void insert_loader(lua_State *L, int at, lua_CFunction search, bool compiled)
{
    for (int i = (int)lua_objlen(L, -1); i >= at; i--) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushboolean(L, compiled);
    lua_pushcclosure(L, search, 1);
    lua_rawseti(L, -2, at);
}

void modules_open(lua_State *L, const struct embedded_module *sample)
{
    /* package.preload and the path are the first two: luaopen_package. */
    bool compiled = same_bytecode(L, sample);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "loaders");
    insert_loader(L, 3, search_embedded, compiled);
    insert_loader(L, 2, search_first, compiled);
    lua_pop(L, 2);
}

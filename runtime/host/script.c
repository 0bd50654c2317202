#include "host/script.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/log.h"
#include "host/config.h"
#include "lua/error_text.h"
#include "lua/task.h"
#include "lua/vm.h"

#define EXIT_USAGE 2

/* Whether a script of the user's was loaded: whatever it raises means that it does not validate. */
static bool app_loaded;

/* `arg` as every Lua interpreter sets it: the script at 0, its arguments above, the interpreter
 * below. */
static void set_arg(lua_State *L, const struct host_config *config, int first)
{
    lua_createtable(L, config->argc - first, first + 1);
    for (int i = 0; i < config->argc; i++) {
        lua_pushstring(L, config->argv[i]);
        lua_rawseti(L, -2, i - first);
    }
    lua_setglobal(L, "arg");
}

static void raise_usage(lua_State *L)
{
    /* A table, so that the command can tell a mistake of the user's from a failure of the script.
     */
    lua_createtable(L, 0, 2);
    lua_insert(L, -2);
    lua_setfield(L, -2, "message");
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "usage");
    (void)lua_error(L);
}

int script_load(lua_State *L, const struct host_config *config, int first)
{
    const char *path = config->argv[first];
    app_loaded = true;
    set_arg(L, config, first);
    if (luaL_loadfile(L, path) != 0)
        raise_usage(L);
    luaL_checkstack(L, config->argc, "too many arguments");
    for (int i = first + 1; i < config->argc; i++)
        lua_pushstring(L, config->argv[i]);
    return config->argc - first;
}

static int push_command(lua_State *L)
{
    const struct host_config *config = lua_touserdata(L, 1);
    lua_getglobal(L, "require");
    lua_pushstring(L, config->lua_child ? "crown.election.child_main" : "crown.command");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "main");
    lua_createtable(L, config->argc, 0);
    for (int i = 1; i < config->argc; i++) {
        lua_pushstring(L, config->argv[i]);
        lua_rawseti(L, -2, i);
    }
    return 2;
}

/* What an error says to the user, and what exit code it means. */
static int report(lua_State *L)
{
    int top = lua_gettop(L);
    int code = app_loaded ? EXIT_USAGE : 1;
    if (lua_isnil(L, top))
        return 1; /* error(nil): the script has said what it wanted to */
    if (lua_istable(L, top)) {
        lua_pushliteral(L, "usage");
        lua_rawget(L, top);
        if (lua_toboolean(L, -1))
            code = EXIT_USAGE;
        lua_pop(L, 1);
    }
    char text[4096];
    (void)snprintf(text, sizeof(text), "crown-lua: %s", lua_error_text(L));
    log_say(text);
    return code;
}

static void main_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    const struct script *script = context;
    lua_State *L = task_state(task);
    int code = 0;
    if (outcome == TASK_FAILED)
        code = report(L);
    else if (nresults > 0 && lua_isnumber(L, -nresults))
        code = (int)lua_tonumber(L, -nresults); /* the command's exit code */
    script->ended(code, script->context);
}

void script_start(struct script *script, struct lua_vm *lua, const struct host_config *config)
{
    lua_State *L = lua_vm_state(lua);
    int base = lua_gettop(L);
    lua_pushcfunction(L, push_command);
    lua_pushlightuserdata(L, (void *)config);
    if (lua_pcall(L, 1, LUA_MULTRET, 0) != 0) {
        script->ended(report(L), script->context);
        lua_settop(L, base);
        return;
    }
    int nargs = lua_gettop(L) - base - 1;
    if (task_spawn(lua, L, nargs, NULL, main_done, script) == NULL)
        script->ended(1, script->context);
}

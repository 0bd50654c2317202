/* crown.core.exec(argv [, options]) -> { code =, signal =, stdout =, stderr =, truncated = }, or
 * nil, message, code: `timeout` when it was cut off. Options: timeout (5 s), stdin (a string), env
 * (a table of additions), cwd. */
#include <lauxlib.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "bind/child_options.h"
#include "bind/handle.h"
#include "child/exec.h"
#include "host/host.h"
#include "lua/task.h"

#define EXEC_TYPE "crown.exec"
#define EXEC_TIMEOUT_DEFAULT 5.0

static int exec_gc(lua_State *L)
{
    struct exec **handle = luaL_checkudata(L, 1, EXEC_TYPE);
    exec_free(*handle);
    *handle = NULL;
    return 0;
}

static int push_result(lua_State *L, struct op *op)
{
    struct exec **handle = op->context;
    const struct exec_result *result = exec_result(*handle);
    if (!result->started) {
        struct crown_error err;
        (void)error_set(&err, ERROR_SYSTEM, "%s",
                        result->error[0] != '\0' ? result->error
                                                 : "the command could not be started");
        return push_error(L, &err);
    }
    if (result->timed_out) {
        /* The keeper was quicker than the waiting task, which goes by the same instant. */
        struct crown_error err;
        (void)error_set(&err, ERROR_TIMEOUT, "timeout");
        return push_error(L, &err);
    }
    lua_createtable(L, 0, 5);
    if (WIFSIGNALED(result->status)) {
        lua_pushinteger(L, WTERMSIG(result->status));
        lua_setfield(L, -2, "signal");
        lua_pushinteger(L, 128 + WTERMSIG(result->status)); /* as a shell tells it */
    } else {
        lua_pushinteger(L, WEXITSTATUS(result->status));
    }
    lua_setfield(L, -2, "code");
    lua_pushlstring(L, result->text[0] != NULL ? result->text[0] : "", result->size[0]);
    lua_setfield(L, -2, "stdout");
    lua_pushlstring(L, result->text[1] != NULL ? result->text[1] : "", result->size[1]);
    lua_setfield(L, -2, "stderr");
    if (result->truncated) {
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, "truncated");
    }
    return 1;
}

/* The system would cut it off there. */
static bool has_nul(lua_State *L, int index)
{
    size_t length = 0;
    const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &length) : NULL;
    return text != NULL && strlen(text) != length;
}

static void refuse_nul(lua_State *L)
{
    lua_getfield(L, 2, "cwd");
    if (has_nul(L, -1))
        luaL_argerror(L, 2, "cwd has a NUL byte in it");
    lua_getfield(L, 2, "env");
    for (lua_pushnil(L); lua_istable(L, -2) && lua_next(L, -2) != 0; lua_pop(L, 1))
        if (has_nul(L, -2) || has_nul(L, -1))
            luaL_argerror(L, 2, "env has a NUL byte in a name or a value");
    lua_settop(L, 2);
}

/* The options of exec have a child's names, so that one reader serves both: {argv=, env=, cwd=}. */
static struct child_options *read_options(lua_State *L)
{
    lua_createtable(L, 0, 3);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "argv");
    static const char *const keys[] = {"env", "cwd"};
    for (int i = 0; i < 2; i++) {
        lua_getfield(L, 2, keys[i]);
        lua_setfield(L, -2, keys[i]);
    }
    struct child_options *options = child_options_read(L, lua_gettop(L));
    lua_pop(L, 1);
    if (options == NULL)
        luaL_argerror(
            L, 1, "a list of strings without NUL bytes expected: {\"command\", \"argument\", …}");
    return options;
}

static int core_exec(lua_State *L)
{
    if (task_finalizes(L))
        return push_scope_over(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_isnoneornil(L, 2)) {
        lua_settop(L, 1);
        lua_newtable(L);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    refuse_nul(L);
    lua_getfield(L, 2, "timeout");
    int64_t timeout_ns = clock_ns_from_seconds(luaL_optnumber(L, -1, EXEC_TIMEOUT_DEFAULT));
    lua_getfield(L, 2, "stdin");
    size_t input_size = 0;
    const char *input = luaL_optlstring(L, -1, NULL, &input_size);
    struct exec **handle = lua_newuserdata(L, sizeof(*handle));
    *handle = NULL;
    luaL_getmetatable(L, EXEC_TYPE);
    lua_setmetatable(L, -2);
    struct child_options *options = read_options(L);
    const char *const nothing[] = {NULL};
    char **environment = child_environment(options, nothing);
    struct child_spec spec = {
        .argv = options->argv, .envp = environment, .cwd = options->cwd, .label = options->argv[0]};
    struct crown_error err = {0};
    if (environment == NULL)
        (void)error_set(&err, ERROR_MEMORY, "run %s: out of memory", options->argv[0]);
    else
        *handle =
            exec_start(&check_host(L)->children, task_scope_here(L), &spec,
                       clock_add_ns(clock_boottime_ns(), timeout_ns), input, input_size, &err);
    strings_free(environment);
    child_options_free(options);
    if (*handle == NULL)
        return push_error(L, &err);
    struct op *op = exec_op(*handle);
    op->context = handle;
    task_keep(L, -1);
    /* The wait goes by the loop's clock, which a spec may have moved; the keeper by the kernel's.
     */
    int64_t now_ns = loop_now(lua_vm_loop(lua_vm_of(L)));
    return task_wait(L, op, clock_add_ns(now_ns, timeout_ns), push_result);
}

int bind_open_exec(lua_State *L)
{
    luaL_newmetatable(L, EXEC_TYPE);
    lua_pushcfunction(L, exec_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    lua_pushcfunction(L, core_exec);
    return 1;
}

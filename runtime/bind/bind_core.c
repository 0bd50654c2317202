/* crown.core: time, tasks, the log, and what the process is. */
#include <lauxlib.h>
#include <lua5.1/lua-cjson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/character.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/redact.h"
#include "bind/bind.h"
#include "bind/fields.h"
#include "bind/guarded_processes.h"
#include "bind/handle.h"
#include "child/ids.h"
#include "host/host.h"
#include "host/script.h"
#include "lua/task.h"

#define TASK_TYPE "crown.task"
#define MAX_FIELDS 32

/* now() -> seconds on a clock that never jumps and counts suspend. */
static int core_now(lua_State *L)
{
    lua_pushnumber(L, clock_seconds_from_ns(loop_now(lua_vm_loop(lua_vm_of(L)))));
    return 1;
}

/* core.wall_offset() -> by how many seconds the time of day is ahead of our own clock. */
static int core_wall_offset(lua_State *L)
{
    lua_pushnumber(L, clock_seconds_from_ns(clock_wall_offset_ns()));
    return 1;
}

struct pause {
    struct op op;
    struct loop_job job;
};

static void pause_over(struct loop_job *job)
{
    op_complete(&container_of(job, struct pause, job)->op);
}

static void pause_cancelled(struct op *op)
{
    loop_unpost(op->loop, &container_of(op, struct pause, op)->job);
}

/* Until the loop has turned once: no time has to pass for that, also where the clock is frozen. */
static int pause_turn(lua_State *L)
{
    struct loop *loop = lua_vm_loop(lua_vm_of(L));
    struct pause *pause = lua_newuserdata(L, sizeof(*pause));
    *pause = (struct pause){.job = {.run = pause_over}};
    op_init(&pause->op, loop, pause_cancelled);
    loop_defer(loop, &pause->job);
    task_keep(L, -1);
    return task_wait(L, &pause->op, TIME_NEVER, NULL);
}

/* sleep(seconds) -> nothing, or nil, "cancelled", "cancelled". */
static int core_sleep(lua_State *L)
{
    int64_t ns = clock_ns_from_seconds(luaL_checknumber(L, 1));
    if (ns == 0)
        return pause_turn(L);
    return task_wait(L, NULL, clock_add_ns(loop_now(lua_vm_loop(lua_vm_of(L))), ns), NULL);
}

/* spawn(fn, …) -> task, or nil, message where the term is over. */
static int core_spawn(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    struct task **handle = lua_newuserdata(L, sizeof(struct task *));
    *handle = NULL;
    luaL_getmetatable(L, TASK_TYPE);
    lua_setmetatable(L, -2);
    lua_insert(L, 1);
    struct task *task = task_spawn(lua_vm_of(L), L, lua_gettop(L) - 2, NULL, NULL, NULL);
    if (task == NULL)
        return push_scope_over(L);
    *handle = task;
    task_set_handle(task, handle);
    return 1;
}

/* detach(fn, …): a task that belongs to nobody's term or call: for what elections share. */
static int core_detach(lua_State *L)
{
    struct lua_vm *host = lua_vm_of(L);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    (void)task_spawn(host, L, lua_gettop(L) - 1, task_vm_scope(host), NULL,
                     NULL); /* a host that ends starts nothing */
    return 0;
}

/* atomic(fn, …) -> what fn returns. No other task runs before it has: a task that computes for long
 * is made to yield between any two instructions, but not across a call from C. fn may not wait, and
 * has half a second. */
static int core_atomic(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* task:cancel(): its present wait, and each later one, returns nil, "cancelled". */
static int core_task_cancel(lua_State *L)
{
    struct task **handle = luaL_checkudata(L, 1, TASK_TYPE);
    if (*handle != NULL)
        task_cancel(*handle);
    return 0;
}

static int core_task_gc(lua_State *L)
{
    struct task **handle = luaL_checkudata(L, 1, TASK_TYPE);
    if (*handle != NULL)
        task_set_handle(*handle, NULL);
    return 0;
}

static enum log_level check_level(lua_State *L, int index)
{
    enum log_level level;
    const char *word = luaL_checkstring(L, index);
    if (log_level_from_name(word, &level) < 0)
        luaL_argerror(L, index, "debug, info, warn or error expected");
    return level;
}

/* log(level, text [, fields]) */
static int core_log(lua_State *L)
{
    enum log_level level = check_level(L, 1);
    const char *text = luaL_checkstring(L, 2);
    struct log_field fields[MAX_FIELDS];
    if (log_enabled(level, text))
        log_event(level, text, fields, event_fields(L, 3, fields, MAX_FIELDS));
    return 0;
}

/* log_enabled(level, text) -> whether a line that begins so would be written. */
static int core_log_enabled(lua_State *L)
{
    lua_pushboolean(L, log_enabled(check_level(L, 1), luaL_checkstring(L, 2)));
    return 1;
}

/* log_setup{ level =, format =, filter = } -> true, or nil, message. */
static int core_log_setup(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "level");
    lua_getfield(L, 1, "format");
    lua_getfield(L, 1, "filter");
    enum log_level level = LOG_INFO;
    enum log_format format = LOG_TEXT;
    if (!lua_isnil(L, 2) && log_level_from_name(lua_tostring(L, 2), &level) < 0) {
        lua_pushnil(L);
        lua_pushliteral(L, "log level: debug, info, warn or error expected");
        return 2;
    }
    if (!lua_isnil(L, 3) && log_format_from_name(lua_tostring(L, 3), &format) < 0) {
        lua_pushnil(L);
        lua_pushliteral(L, "log format: text, logfmt or json expected");
        return 2;
    }
    if (!lua_isnil(L, 4) && log_set_filter(lua_tostring(L, 4)) < 0) {
        lua_pushnil(L);
        lua_pushliteral(L, "log filter: a list like leadership=debug,child=error expected");
        return 2;
    }
    if (!lua_isnil(L, 2))
        log_set_level(level);
    if (!lua_isnil(L, 3))
        log_set_format(format);
    link_log(check_host(L)->link, log_format(), log_level());
    lua_pushboolean(L, 1);
    return 1;
}

/* redact(text) -> the text with passwords blotted out. */
static int core_redact(lua_State *L)
{
    char *text = strdup(luaL_checkstring(L, 1));
    if (text == NULL)
        return luaL_error(L, "out of memory");
    redact(text);
    lua_pushstring(L, text);
    free(text);
    return 1;
}

/* advice(problem, store, tls, spoke, answered) -> what to look at next, or nil: base/advice.h. */
static int core_advice(lua_State *L)
{
    char text[200];
    const struct advice_link link = {.store = luaL_checkstring(L, 2),
                                     .tls = lua_toboolean(L, 3) != 0,
                                     .spoke = lua_toboolean(L, 4) != 0,
                                     .answered = lua_toboolean(L, 5) != 0};
    if (!advice(&link, luaL_checkstring(L, 1), text, sizeof(text)))
        return 0;
    lua_pushstring(L, text);
    return 1;
}

/* utf8(text) -> the text with U+FFFD for each byte that belongs to no character. */
static int core_utf8(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    const char *end = text + length, *kept = text;
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    while (text < end) {
        struct character one = character_at(text);
        if (one.code == CHARACTER_NONE && one.length == 1) {
            luaL_addlstring(&buffer, kept, (size_t)(text - kept));
            luaL_addstring(&buffer, "\xef\xbf\xbd");
            kept = text + 1;
        }
        text += one.length;
    }
    luaL_addlstring(&buffer, kept, (size_t)(end - kept));
    luaL_pushresult(&buffer);
    return 1;
}

/* exit(code): ends the runtime in order, without waiting for anything. */
static int core_exit(lua_State *L)
{
    lifetime_exit(&check_host(L)->lifetime, luaL_optint(L, 1, 0));
    return 0;
}

/* exit_code(code): for when the last election has ended, whatever its command ends with. */
static int core_exit_code(lua_State *L)
{
    lifetime_fix_code(&check_host(L)->lifetime, luaL_checkint(L, 1));
    return 0;
}

/* exit_code_before(code): the same, as long as no command has begun. */
static int core_exit_code_before(lua_State *L)
{
    lifetime_set_code(&check_host(L)->lifetime, luaL_checkint(L, 1));
    return 0;
}

/* load_script(position) -> the script's function and its arguments; `position` counts as in `arg`.
 */
static int core_load_script(lua_State *L)
{
    int position = luaL_checkint(L, 1);
    lua_settop(L, 0);
    return script_load(L, check_host(L)->config, position);
}

/* node([name]) -> this candidate's name; sets it first where one is given. */
static int core_node(lua_State *L)
{
    struct host *host = check_host(L);
    if (!lua_isnoneornil(L, 1))
        host_set_node(host, luaL_checkstring(L, 1));
    lua_pushstring(L, host->node);
    return 1;
}

/* what(text): what `ps` calls that which runs here: a verb, or an app. */
static int core_what(lua_State *L)
{
    struct host *host = check_host(L);
    (void)snprintf(host->what, sizeof(host->what), "%s", luaL_checkstring(L, 1)); /* cut is fine */
    return 0;
}

/* alone(): this process holds no election that a task could hold up. */
static int core_alone(lua_State *L)
{
    task_alone(lua_vm_of(L));
    return 0;
}

/* heartbeat(seconds): how long the runtime may be silent before it is restarted. */
static int core_heartbeat(lua_State *L)
{
    heartbeat_set_silence(&check_host(L)->heartbeat, clock_ns_from_seconds(luaL_checknumber(L, 1)));
    return 0;
}

/* stay(): the program goes on without an election too, until it is told to end. */
static int core_stay(lua_State *L)
{
    struct host *host = check_host(L);
    if (!host->stays)
        lifetime_hold(&host->lifetime);
    host->stays = true;
    return 0;
}

/* is_ending() -> whether the program was told to end: an election that begins now ends at once. */
static int core_is_ending(lua_State *L)
{
    lua_pushboolean(L, check_host(L)->env.stopping);
    return 1;
}

/* keep(): the loss of the terminal ends nothing. */
static int core_keep(lua_State *L)
{
    struct crown_error err = {0};
    if (link_keep(check_host(L)->link, &err) < 0)
        return luaL_error(L, "%s", err.message);
    return 0;
}

/* once(code, text): the program's death ends it: its supervisor says this and exits so, instead of
 * a restart. */
static int core_once(lua_State *L)
{
    struct crown_error err = {0};
    if (link_once(check_host(L)->link, luaL_checkint(L, 1), luaL_checkstring(L, 2), &err) < 0)
        return luaL_error(L, "%s", err.message);
    return 0;
}

/* user_ids(user [, group]) -> uid, gid, { groups… }, or nil, message. Names or numbers. */
static int core_user_ids(lua_State *L)
{
    struct ids ids;
    struct crown_error err;
    if (ids_lookup(luaL_optstring(L, 1, NULL), luaL_optstring(L, 2, NULL), &ids, &err) < 0)
        return push_error(L, &err);
    lua_pushnumber(L, ids.uid);
    lua_pushnumber(L, ids.gid);
    lua_createtable(L, ids.group_count, 0);
    for (int i = 0; i < ids.group_count; i++) {
        lua_pushnumber(L, ids.groups[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 3;
}

/* home() -> the user's home directory as the accounts have it, or nothing. */
static int core_home(lua_State *L)
{
    const char *home = ids_home();
    if (home == NULL)
        return 0;
    lua_pushstring(L, home);
    return 1;
}

static const luaL_Reg functions[] = {
    {"now", core_now},
    {"wall_offset", core_wall_offset},
    {"sleep", core_sleep},
    {"spawn", core_spawn},
    {"detach", core_detach},
    {"atomic", core_atomic},
    {"log", core_log},
    {"log_enabled", core_log_enabled},
    {"log_setup", core_log_setup},
    {"redact", core_redact},
    {"advice", core_advice},
    {"utf8", core_utf8},
    {"exit", core_exit},
    {"exit_code", core_exit_code},
    {"exit_code_before", core_exit_code_before},
    {"load_script", core_load_script},
    {"node", core_node},
    {"what", core_what},
    {"alone", core_alone},
    {"heartbeat", core_heartbeat},
    {"keep", core_keep},
    {"stay", core_stay},
    {"is_ending", core_is_ending},
    {"once", core_once},
    {"user_ids", core_user_ids},
    {"home", core_home},
    {NULL, NULL},
};

static void make_task_type(lua_State *L)
{
    static const luaL_Reg methods[] = {{"cancel", core_task_cancel}, {NULL, NULL}};
    bind_make_type(L, TASK_TYPE, methods, core_task_gc);
}

/* LuaJIT's generator begins with the same number in every process. */
static void seed_random(lua_State *L)
{
    lua_getglobal(L, "math");
    lua_getfield(L, -1, "randomseed");
    lua_pushnumber(L, (lua_Number)(random_next(&check_host(L)->random) >> 11));
    lua_call(L, 1, 0);
    lua_pop(L, 1);
}

int bind_open_core(lua_State *L)
{
    seed_random(L);
    guarded_processes_install(L);
    make_task_type(L);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    lua_pushstring(L, CROWN_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, check_host(L)->token);
    lua_setfield(L, -2, "token");
    lua_pushboolean(L, check_host(L)->config->lua_child);
    lua_setfield(L, -2, "lua_child");
    lua_pushnumber(L, getpid());
    lua_setfield(L, -2, "pid");
    lua_pushnumber(L, check_host(L)->restarts);
    lua_setfield(L, -2, "restarts");
    (void)luaopen_cjson(L);
    lua_setfield(L, -2, "json");
    return 1;
}

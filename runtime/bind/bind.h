/**
 * The C tables that Lua sees, one file each. A binding checks everything, then acquires, then
 * calls, then pushes; what can fail in the world returns nil, message, code; misuse raises. A
 * binding that waits ends with task_wait.
 */
#ifndef CROWN_BIND_BIND_H
#define CROWN_BIND_BIND_H

#include <lauxlib.h>
#include <lua.h>

#include "base/error.h"
#include "lua/vm.h"

struct host;

/** All modules, ended by {NULL, NULL}; for lua_vm_new. */
extern const struct lua_module bind_modules[];

/** Pushes nil, message, code. @return 3. */
int push_error(lua_State *L, const struct crown_error *err);

/** The same for errno: "WHAT PATH: no such file or directory". */
int push_errno(lua_State *L, const char *what, const char *path);

/** Makes the metatable of a userdata type: its methods, and what runs when Lua lets go of one. */
void bind_make_type(lua_State *L, const char *name, const struct luaL_Reg *methods,
                    lua_CFunction gc);

/** @return the host that runs L. */
struct host *check_host(lua_State *L);

int bind_open_build(lua_State *L);
int bind_open_console(lua_State *L);
int bind_open_core(lua_State *L);
int bind_open_crypto(lua_State *L);
int bind_open_disk(lua_State *L);
int bind_open_election(lua_State *L);
int bind_open_exec(lua_State *L);
int bind_open_files(lua_State *L);
int bind_open_gather(lua_State *L);
int bind_open_http(lua_State *L);
int bind_open_http_request(lua_State *L);
int bind_open_lockfile(lua_State *L);
int bind_open_mark(lua_State *L);
int bind_open_nats(lua_State *L);
int bind_open_notices(lua_State *L);
int bind_open_postgres(lua_State *L);
int bind_open_retry(lua_State *L);
int bind_open_promise(lua_State *L);
int bind_open_renewals(lua_State *L);
int bind_open_resp(lua_State *L);
int bind_open_rows(lua_State *L);
int bind_open_subscription(lua_State *L);
int bind_open_tcp(lua_State *L);
int bind_open_testing(lua_State *L);
int bind_open_watch_file(lua_State *L);

#endif

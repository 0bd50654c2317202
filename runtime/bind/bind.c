#include "bind/bind.h"

#include <errno.h>

#include "host/host.h"

const struct lua_module bind_modules[] = {
    {"crown.core", bind_open_core},
    {"crown.core.build", bind_open_build},
    {"crown.core.console", bind_open_console},
    {"crown.core.crypto", bind_open_crypto},
    {"crown.core.disk", bind_open_disk},
    {"crown.core.election", bind_open_election},
    {"crown.core.exec", bind_open_exec},
    {"crown.core.files", bind_open_files},
    {"crown.core.gather", bind_open_gather},
    {"crown.core.http", bind_open_http},
    {"crown.core.http_request", bind_open_http_request},
    {"crown.core.lockfile", bind_open_lockfile},
    {"crown.core.mark", bind_open_mark},
    {"crown.core.nats", bind_open_nats},
    {"crown.core.notices", bind_open_notices},
    {"crown.core.postgres", bind_open_postgres},
    {"crown.core.promise", bind_open_promise},
    {"crown.core.renewals", bind_open_renewals},
    {"crown.core.resp", bind_open_resp},
    {"crown.core.retry", bind_open_retry},
    {"crown.core.rows", bind_open_rows},
    {"crown.core.subscription", bind_open_subscription},
    {"crown.core.tcp", bind_open_tcp},
    {"crown.core.testing", bind_open_testing},
    {"crown.core.watch_file", bind_open_watch_file},
    {NULL, NULL},
};

int push_error(lua_State *L, const struct crown_error *err)
{
    lua_pushnil(L);
    lua_pushstring(L, err->message);
    lua_pushstring(L, error_code_name(err->code));
    return 3;
}

int push_errno(lua_State *L, const char *what, const char *path)
{
    struct crown_error err;
    (void)error_set_errno(&err, errno, "%s %s", what, path);
    return push_error(L, &err);
}

void bind_make_type(lua_State *L, const char *name, const struct luaL_Reg *methods,
                    lua_CFunction gc)
{
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
    lua_newtable(L);
    luaL_register(L, NULL, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

struct host *check_host(lua_State *L)
{
    return lua_vm_owner(lua_vm_of(L));
}

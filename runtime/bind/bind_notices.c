/* crown.core.notices: what the command tells the service manager. */
#include "bind/bind.h"
#include "host/host.h"
#include "telemetry/notices.h"

static void changed(void *context)
{
    struct host *host = context;
    host->env.changed(&host->env);
}

/* open() -> what the command's NOTIFY_SOCKET has to be; nothing where no service manager listens;
 * or nil, message, code. */
static int notices_open_socket(lua_State *L)
{
    struct crown_error err;
    struct host *host = check_host(L);
    const char *name = notices_open(host->env.loop, changed, host, &err);
    if (name == NULL)
        return err.code == 0 ? 0 : push_error(L, &err);
    lua_pushstring(L, name);
    return 1;
}

/* forget(): the command has ended. */
static int notices_forget_all(lua_State *L)
{
    (void)L;
    notices_forget();
    return 0;
}

static const luaL_Reg functions[] = {
    {"open", notices_open_socket},
    {"forget", notices_forget_all},
    {NULL, NULL},
};

int bind_open_notices(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

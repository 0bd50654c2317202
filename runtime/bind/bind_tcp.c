/* crown.core.tcp: connections and listeners.
 * connect(host, port [, options]) -> connection, or nil, message, code; options: timeout (5), tls
 * (true or a table), silence: seconds that a peer which acknowledges nothing goes unnoticed (10),
 * on_opening(opening): called before the wait; opening:step() tells how far it is.
 * listen(host, port, fn [, options]) -> listener, or nil, message, code; options: tls; background
 * (the program may end meanwhile); fn(connection) runs in a task each. listener:port(), :close(),
 * :pause(seconds): who connects meanwhile waits in the kernel.
 * fits_tls(options) -> true where OpenSSL can read the files `ca`, `cert` and `key` and they belong
 * together; or nil, message, code. */
#include <lauxlib.h>

#include "bind/bind.h"
#include "bind/tcp_connection.h"
#include "bind/tcp_listen.h"

int bind_open_tcp(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"connect", tcp_connect},
        {"listen", tcp_listen},
        {"fits_tls", tcp_fits_tls},
        {NULL, NULL},
    };
    tcp_make_connection_type(L);
    tcp_make_listener_type(L);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

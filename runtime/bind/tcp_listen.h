/**
 * Listeners as Lua sees them.
 */
#ifndef CROWN_BIND_TCP_LISTEN_H
#define CROWN_BIND_TCP_LISTEN_H

#include <lua.h>

/** listen(host, port, fn [, options]) -> listener, or nil, message, code. */
int tcp_listen(lua_State *L);

void tcp_make_listener_type(lua_State *L);

#endif

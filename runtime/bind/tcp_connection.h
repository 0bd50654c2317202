/**
 * Connections as Lua sees them.
 */
#ifndef CROWN_BIND_TCP_CONNECTION_H
#define CROWN_BIND_TCP_CONNECTION_H

#include <lua.h>
#include <stdbool.h>

#include "base/error.h"
#include "net/stream.h"

/** connect(host, port [, options]) -> connection, or nil, message, code. */
int tcp_connect(lua_State *L);

/** Pushes a connection for a stream that is open; the stream changes owner. */
void tcp_push_connection(lua_State *L, struct stream *stream);

/** fits_tls(options) -> true, or nil, message, code: whether OpenSSL takes its files. */
int tcp_fits_tls(lua_State *L);

/** @return a context for `true` or a table of options at `index`; NULL with `err`. */
struct tls_context *tcp_read_tls(lua_State *L, int index, bool server, struct crown_error *err);

/** @return the port at `index`, from `least` to 65535, or raises. */
int tcp_check_port(lua_State *L, int index, int least);
/** @return the host or "unix:/path" at `index`, or raises. */
const char *tcp_check_host(lua_State *L, int index);

/** Pushes nil, "closed", code. @return 3. */
int tcp_push_closed(lua_State *L);

void tcp_make_connection_type(lua_State *L);

#endif

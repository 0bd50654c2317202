/**
 * Listening sockets: each connection is handed over as it is accepted.
 */
#ifndef CROWN_NET_LISTEN_H
#define CROWN_NET_LISTEN_H

#include "base/error.h"
#include "loop/loop.h"

struct listener;

/** @param fd a connected socket, CLOEXEC and non-blocking; the callee's. */
typedef void listener_accepted(void *context, int fd);

/**
 * @param host an address, or "unix:/path"; no names: a server knows its addresses.
 * @param port 0: any.
 * @return NULL with `err`.
 */
struct listener *listener_open(struct loop *loop, const char *host, unsigned port,
                               listener_accepted *accepted, void *context, struct crown_error *err);
/** @return the port, also where any was asked for; 0 for a UNIX socket. */
unsigned listener_port(const struct listener *listener);
/** Takes nobody in for a while: who connects meanwhile waits in the kernel. */
void listener_pause(struct listener *listener, int64_t ns);
void listener_close(struct listener *listener);

#endif

/** Connecting: a name or an address becomes a connected socket, on the loop. */
#ifndef CROWN_NET_DIAL_H
#define CROWN_NET_DIAL_H

#include <stdbool.h>

#include "base/address.h"
#include "base/error.h"
#include "loop/loop.h"

struct dial;

/**
 * Called once, from the loop, never from within dial_start; the dial is gone by then.
 * @param fd connected, the callee's; or -1 with `err`.
 * @param address whom it is connected to, NULL with `err`.
 */
typedef void dialled(void *context, int fd, const struct address *address,
                     const struct crown_error *err);

/**
 * Starts. Every address that a name has is tried, both families in turns, each with a little head
 * start before the next one is tried beside it (RFC 8305); the first that answers is taken.
 * @param host a name, an address, or "unix:/path".
 * @param port a number as text.
 * @return for dial_cancel, until `done` was called; NULL with `err`.
 */
struct dial *dial_start(struct loop *loop, const char *host, const char *port, dialled *done,
                        void *context, struct crown_error *err);

/** @return whether the name is still looked up, and no address tried yet. */
bool dial_is_resolving(const struct dial *dial);

/** `done` will not be called. NULL is allowed. */
void dial_cancel(struct dial *dial);

#endif

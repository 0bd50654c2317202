/**
 * Opens one connection: the servers of a URL one after another, each name's addresses one after
 * another, each with its share of the time, none of it blocking.
 */
#ifndef CROWN_POSTGRES_CONNECT_H
#define CROWN_POSTGRES_CONNECT_H

#include "postgres/libpq.h"
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "postgres/parting.h"

struct postgres_connect;

/**
 * Called once, from the loop.
 * @param conn an open connection, non-blocking, the callee's; NULL with `err`.
 * @param place its server, as partings know it.
 */
typedef void postgres_connected(void *context, PGconn *conn, const char *place,
                                const struct crown_error *err);

/**
 * @param timeout_ns of the whole, from when it has its turn (turns.h); what is left of it is shared
 * among the addresses left to try.
 * @param silence_ns how long a peer that acknowledges nothing goes unnoticed later on.
 * @param partings borrowed: what is given up goes there, and a server that has too many of them is
 * not tried.
 * @return the attempt, valid until `done` was called; NULL with `err`.
 */
struct postgres_connect *postgres_connect(struct loop *loop, const char *url, int64_t timeout_ns,
                                          int64_t silence_ns, struct postgres_partings *partings,
                                          postgres_connected *done, void *context,
                                          struct crown_error *err);
/** @return how far it is: "resolving", or "connecting", which is all that libpq does. */
const char *postgres_connect_step(const struct postgres_connect *connect);
/** Gives up; `done` is not called. */
void postgres_connect_cancel(struct postgres_connect *connect);

#endif

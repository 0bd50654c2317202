/**
 * Connections of a client that were given up. A server may go on with a statement though nobody
 * listens any more, for as long as somebody else holds a lock; and it has a process for each such
 * connection. So one that is given up is said farewell to, its statement is cancelled, and it
 * counts until the server has closed it. A server with POSTGRES_PARTINGS_MOST of them gets no
 * other one.
 *
 * A machine between the two that hangs, or a server that stands still, may never close one. Where
 * none was closed for a while the oldest is forgotten. That while is doubled each time, up to an
 * hour, until a server closes one.
 */
#ifndef CROWN_POSTGRES_PARTING_H
#define CROWN_POSTGRES_PARTING_H

#include "postgres/libpq.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"

/** Of one server: so many that were given up, besides the one that is in use. */
#define POSTGRES_PARTINGS_MOST 2

/** Room for how a server is named here. */
#define POSTGRES_PLACE_SIZE 300

struct postgres_partings;
struct postgres_parting;

/**
 * @param first_ns without any that is closed, before one is forgotten
 * @return NULL when memory is out.
 */
struct postgres_partings *postgres_partings_new(struct loop *loop, int64_t first_ns);
/** The client goes; what is left ends by itself. NULL is fine. */
void postgres_partings_leave(struct postgres_partings *partings);

/** Whether a server has as many as it may. @return 0, or -1 with `err`. */
int postgres_partings_check(const struct postgres_partings *partings, const char *place,
                            struct crown_error *err);
/** There are so many servers, perhaps. */
void postgres_partings_expect(struct postgres_partings *partings, size_t servers);
/** @return how many there are, of all servers, with the connection that cancels. */
unsigned postgres_partings_count(const struct postgres_partings *partings);
/** @return how many that can be at most. */
unsigned postgres_partings_limit(const struct postgres_partings *partings);

/**
 * Gives a connection up.
 * @param conn taken over.
 * @param place its server.
 * @param busy there are statements that are not answered.
 */
void postgres_part(struct postgres_partings *partings, PGconn *conn, const char *place, bool busy);

/**
 * The same for one that is still being made, on a thread that cannot be ended: it counts from now
 * on.
 * @return for postgres_parting_take, when the thread gives it back; NULL when memory is out.
 */
struct postgres_parting *postgres_parting_begin(struct postgres_partings *partings,
                                                const char *place);
/** @param conn taken over; NULL: there is none. @param parting NULL closes the connection. */
void postgres_parting_take(struct postgres_parting *parting, PGconn *conn, bool busy);

#endif

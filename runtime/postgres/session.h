/**
 * One open connection in pipeline mode. Statements go out as they come, each in a transaction of
 * its own; answers come back in order, so each has a slot in a queue. A statement that was given
 * up leaves its slot behind: the answer of one is never read as the answer of the next.
 */
#ifndef CROWN_POSTGRES_SESSION_H
#define CROWN_POSTGRES_SESSION_H

#include "postgres/libpq.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "postgres/parting.h"
#include "postgres/request.h"

struct postgres_session;

/** What a session tells; from the loop. */
struct postgres_session_events {
    /** The connection is gone; what was under way has failed. The callee frees the session. */
    void (*closed)(void *context, const struct crown_error *err);
    void (*notified)(void *context, const char *channel, const char *payload);
    void *context;
};

struct postgres_session_options {
    /* A statement without an answer in its time fails alone, and the connection stays: for what
     * depends on the connection, like a session's locks. Otherwise the connection is given up. */
    bool keep;
    /* The server is told of each statement's time, and ends it by that: see postgres_session_send.
     */
    bool bounded;
    struct postgres_partings *partings; /* borrowed: where a connection goes that is given up */
    const char *place;                  /* its server, as partings know it */
};

/**
 * Takes over an open connection.
 * @return NULL with `err`, the connection closed.
 */
struct postgres_session *postgres_session_new(struct loop *loop, PGconn *conn,
                                              const struct postgres_session_options *options,
                                              const struct postgres_session_events *events,
                                              struct crown_error *err);
/** Closes; requests under way fail with ERROR_CLOSED, `closed` is not called. NULL is fine. */
void postgres_session_free(struct postgres_session *session);

/**
 * Sends a statement. It may fail at once, by its op.
 *
 * In a bounded session another one goes before it, in the same transaction and without a way back
 * of its own: it tells the server how long the statement may wait for a lock, and how long it may
 * take, so that the server answers before its time is over, and goes on with none that was given
 * up. Nothing of that stays with the connection, which may be a pooler's.
 */
void postgres_session_send(struct postgres_session *session, struct postgres_request *request);

/** The request will not be there any more when the answer comes. */
void postgres_slot_abandon(struct postgres_slot *slot);

/** @return when something came last; when the connection was taken over, if nothing has. */
int64_t postgres_session_heard_ns(const struct postgres_session *session);
/** Whether no answer is waited for. */
bool postgres_session_idle(const struct postgres_session *session);
/** Whether the connection is encrypted: then only this process can send on it. */
bool postgres_session_encrypted(const struct postgres_session *session);
/**
 * From now on `midway` is other than 0 while a part of a message may have been sent and the rest
 * has not.
 */
void postgres_session_show_midway(struct postgres_session *session, _Atomic uint32_t *midway);
PGconn *postgres_session_conn(const struct postgres_session *session);
/** Whether the server is in the middle of a transaction of the user's. */
bool postgres_session_in_transaction(const struct postgres_session *session);

#endif

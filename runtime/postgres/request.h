/**
 * One statement on its way: from the caller's words to the result. Its memory is the caller's; a
 * caller that gives up cancels the op, and the answer that still comes is dropped where it arrives.
 */
#ifndef CROWN_POSTGRES_REQUEST_H
#define CROWN_POSTGRES_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/op.h"
#include "postgres/result.h"

struct postgres_slot;

struct postgres_request {
    struct op op; /* completes when `result` is there, or `error` */
    char *sql;    /* NULL: wait until there is a connection, ask nothing */
    char **values;
    int value_count;
    int64_t timeout_ns;
    /* Fails unless the connection is still the one that postgres_client_generation named; 0: any.
     */
    uint64_t generation;
    /* Its answer has few rows: they are taken all at once. */
    bool brief;
    /* The same text will be sent again and again: on a connection to the server itself it is parsed
     * and planned once. */
    bool repeated;
    struct pg_result *result;
    uint64_t generation_used;
    struct crown_error error;
    char sqlstate[6]; /* of an error that the server named, else empty */
    /* Internal. */
    struct list_node link;      /* in the client's queue */
    struct postgres_slot *slot; /* in the session's */
};

/**
 * Copies a statement.
 * @param values as text; NULL for SQL's NULL.
 * @return a request, for postgres_request_free; NULL when memory is out.
 */
struct postgres_request *postgres_request_new(struct loop *loop, const char *sql,
                                              const char *const *values, int count);
/** Cancels it if it is under way. NULL is fine. */
void postgres_request_free(struct postgres_request *request);

/** Completes a request with an error. */
void postgres_request_fail(struct postgres_request *request, const struct crown_error *err);

/**
 * Notes why the server has refused it, which does not complete it.
 * @param is_ours it is a statement of an oracle's, and no user's.
 */
void postgres_request_refused(struct postgres_request *request, const PGconn *conn, bool is_ours,
                              const PGresult *result);

#endif

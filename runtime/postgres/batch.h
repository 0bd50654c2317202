/**
 * Many calls, one statement: calls that come within a short window go out together, as one
 * statement over arrays, $1 the first argument of every call, $2 the second, and so on, all
 * text[]. The statement returns rows whose first column is the call's place in the arrays, from
 * 1; a call whose place is in no row gets none.
 */
#ifndef CROWN_POSTGRES_BATCH_H
#define CROWN_POSTGRES_BATCH_H

#include "postgres/client.h"

struct postgres_batch;
struct postgres_group;

#define POSTGRES_BATCH_COLUMNS 8
/** Calls in one statement: more make a statement hold its rows' locks for long. */
#define POSTGRES_BATCH_MOST 512

/** One call's part. The op completes when the outcome is known; where it is cancelled before that,
 * the call is freed. */
struct postgres_call {
    struct op op;
    const struct pg_result *result;  /* of the whole group; valid until postgres_call_free */
    int row;                         /* this call's; -1: none */
    const struct crown_error *error; /* as `result`; NULL: it was answered */
    /* Internal. */
    struct list_node link;
    struct postgres_batch *batch; /* NULL: it does not wait to be sent any more */
    struct postgres_group *group; /* NULL: it was not sent yet */
    int place;
    uint64_t key; /* of the first text */
    int64_t timeout_ns;
    size_t ends[POSTGRES_BATCH_COLUMNS];
    char elements[]; /* the texts as elements of an array, one behind the other */
};

/**
 * @param client borrowed; must outlive the batch.
 * @param columns how many arguments a call has.
 * @param timed one more parameter follows the arrays: what postgres_batch_due tells.
 * @return NULL when memory is out.
 */
struct postgres_batch *postgres_batch_new(struct postgres_client *client, const char *sql,
                                          int columns, bool timed);
/** Tells the time that the server's clock shows at least as a statement is sent, in seconds since
 * 1970: `base`, and `rate` times the loop's clock in seconds. Both are 0 at first: nothing is known
 * of it. */
void postgres_batch_due(struct postgres_batch *batch, double base, double rate);
/** Whether the server is to keep the statement, parsed and planned, for as long as the connection
 * lasts. Behind a pooler, which lends connections out, it must not: so this is off at first. */
void postgres_batch_prepare(struct postgres_batch *batch, bool on);
/** Calls under way fail with ERROR_CLOSED. NULL is fine. */
void postgres_batch_free(struct postgres_batch *batch);

/**
 * Adds a call.
 * @param values the batch's number of texts. Two calls with the same first text never share a
 * statement.
 * @param window_ns how long it may wait for company; then it goes out as soon as one of the
 * statements under way is answered.
 * @param timeout_ns for the answer, once it was sent: the longest of those that go out together.
 * @return for postgres_call_free once it has completed; NULL when memory is out.
 */
struct postgres_call *postgres_batch_call(struct postgres_batch *batch, const char *const *values,
                                          int64_t window_ns, int64_t timeout_ns);
/** @param sent_ns when the statement that a call went out with was sent. @return a number that is
 * that statement's alone among those of the batch, above 0. */
uint64_t postgres_call_statement(const struct postgres_call *call, int64_t *sent_ns);
/** @return what the server calls the error of a call that failed; "" where it named none. */
const char *postgres_call_sqlstate(const struct postgres_call *call);
/** Lets go of a call, completed or not; a statement that went out with it is not called back. */
void postgres_call_free(struct postgres_call *call);

#endif

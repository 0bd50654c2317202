#include "postgres/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/figure.h"
#include "base/list.h"
#include "net/portion.h"
#include "net/received.h"
#include "postgres/blotted.h"
#include "postgres/explain.h"
#include "postgres/result.h"
#include "postgres/target.h"

struct postgres_slot {
    struct list_node link;
    struct postgres_session *session;
    struct postgres_request *request; /* NULL: abandoned */
    struct loop_deadline deadline;
    int64_t timeout_ns;
    bool tells;    /* its bounds, whose answer comes first */
    bool prepares; /* the answer to the preparation comes next */
    bool brief;
    bool prepared; /* by its statement's name */
};

/* Statements that the server keeps, by their texts; the name is made of the place. */
#define KEPT_MOST 16

struct postgres_session {
    struct loop *loop;
    PGconn *conn;
    bool keep, bounded;
    struct postgres_partings *partings;
    char place[POSTGRES_PLACE_SIZE];
    bool in_transaction;
    _Atomic uint32_t *midway; /* shown to whoever has the socket too; NULL: nobody has */
    struct list slots;
    struct loop_watch watch;
    int64_t heard_ns;
    uint64_t received, whole; /* bytes: so far, and when a row, an answer or a notification ended */
    struct postgres_session_events events;
    struct crown_error error; /* why it is closed */
    struct loop_job closing;  /* the owner hears of it from the run queue */
    bool closed;
    char *kept[KEPT_MOST];
    int kept_count;
    bool keeps_none; /* one that was prepared has failed: perhaps somebody else manages them */
};

static void forget_kept(struct postgres_session *session)
{
    while (session->kept_count > 0)
        free(session->kept[--session->kept_count]);
}

static void slot_free(struct postgres_slot *slot)
{
    list_remove(&slot->link);
    loop_at_cancel(slot->session->loop, &slot->deadline);
    free(slot);
}

static void fail_all(struct postgres_session *session, const struct crown_error *err)
{
    struct list_node *next;
    for (struct list_node *node = list_first(&session->slots); node != NULL; node = next) {
        struct postgres_slot *slot = (struct postgres_slot *)node;
        next = list_next(&session->slots, node);
        struct postgres_request *request = slot->request;
        slot_free(slot);
        if (request != NULL)
            postgres_request_fail(request, err);
    }
}

/* Ends the connection for good; the owner is told once, from the run queue. */
static void break_off(struct postgres_session *session, const struct crown_error *err)
{
    if (session->closed)
        return;
    session->closed = true;
    session->error = *err;
    loop_unwatch(&session->watch);
    postgres_part(session->partings, session->conn, session->place, !list_empty(&session->slots));
    session->conn = NULL;
    loop_post(session->loop, &session->closing); /* before the waiters, who may ask anew */
    fail_all(session, err);
}

static void explain(const struct postgres_session *session, struct crown_error *err)
{
    postgres_explain(libpq.PQhost(session->conn), libpq.PQport(session->conn), POSTGRES_SPOKE, err);
}

static void break_off_libpq(struct postgres_session *session)
{
    struct crown_error err;
    char *message = postgres_blotted(session->conn, libpq.PQerrorMessage(session->conn));
    bool has_words = message != NULL && message[0] != '\0';
    (void)postgres_error(has_words ? message : "the connection was closed", ERROR_CLOSED, &err);
    free(message);
    explain(session, &err);
    break_off(session, &err);
}

static void tell_closed(struct loop_job *job)
{
    struct postgres_session *session = container_of(job, struct postgres_session, closing);
    session->events.closed(session->events.context, &session->error);
}

/* --- answers */

/* A part of an answer: a row, the end of the rows, or why there is none. @return 0, or -1 with
 * `err`: what comes is too much. */
static int take_part(struct postgres_slot *slot, const PGresult *part, struct crown_error *err)
{
    struct postgres_request *request = slot->request;
    ExecStatusType status = libpq.PQresultStatus(part);
    if (status == PGRES_FATAL_ERROR && slot->prepared)
        slot->session->keeps_none = true;
    if (slot->tells && status != PGRES_FATAL_ERROR) {
        slot->tells = status == PGRES_SINGLE_TUPLE;
        return 0;
    }
    if (slot->prepares && status == PGRES_COMMAND_OK) {
        slot->prepares = false;
        return 0;
    }
    if (request == NULL || request->error.code != ERROR_NONE)
        return 0;
    if (status == PGRES_SINGLE_TUPLE || status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return postgres_result_add(&request->result, part, err);
    if (status == PGRES_FATAL_ERROR)
        postgres_request_refused(request, slot->session->conn, slot->session->bounded, part);
    else
        (void)error_set(&request->error, ERROR_STORE, "%s is not possible here",
                        libpq.PQresStatus(status));
    return 0;
}

/* libpq would gather all of a result, however much a server sends. It has to be asked anew for each
 * statement, before the first word of its answer is read. */
static void rows_one_by_one(struct postgres_session *session)
{
    const struct postgres_slot *next = (struct postgres_slot *)list_first(&session->slots);
    if (next == NULL || next->brief)
        return;
    (void)libpq.PQsetSingleRowMode(session->conn); /* fails where no answer is to be read now */
}

static void slot_done(struct postgres_slot *slot)
{
    struct postgres_request *request = slot->request;
    slot->session->in_transaction = libpq.PQtransactionStatus(slot->session->conn) != PQTRANS_IDLE;
    slot_free(slot);
    if (request == NULL)
        return;
    request->slot = NULL;
    op_complete(&request->op);
}

static bool is_copy(const PGresult *result)
{
    ExecStatusType status = libpq.PQresultStatus(result);
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/* libpq would say for ever that it is copying: PQgetResult makes no progress in these states. */
static int refuse_copy(struct crown_error *err)
{
    return error_set(err, ERROR_STORE,
                     "COPY from or to the client is not possible: the connection was closed");
}

/* @return 0, or -1 with `err`: the connection is of no use any more. */
static int take_answer(struct postgres_session *session, const PGresult *part,
                       struct crown_error *err)
{
    struct postgres_slot *slot = (struct postgres_slot *)list_first(&session->slots);
    if (is_copy(part))
        return refuse_copy(err);
    if (libpq.PQresultStatus(part) != PGRES_PIPELINE_SYNC)
        return take_part(slot, part, err);
    slot_done(slot);
    rows_one_by_one(session);
    return 0;
}

/* Each statement answers with its rows, NULL, and the sync point's own result. */
static void take_answers(struct postgres_session *session)
{
    bool ended = false; /* twice NULL: nothing more is to be had, whatever the slots say */
    while (!list_empty(&session->slots) && !libpq.PQisBusy(session->conn)) {
        struct crown_error err;
        PGresult *part = libpq.PQgetResult(session->conn);
        if (part == NULL && ended)
            return;
        ended = part == NULL;
        if (ended) {
            rows_one_by_one(session); /* where a statement of several has its turn now */
            continue;
        }
        session->whole = session->received;
        int result = take_answer(session, part, &err);
        libpq.PQclear(part);
        if (result < 0) {
            break_off(session, &err);
            return;
        }
    }
}

static void take_notifications(struct postgres_session *session)
{
    PGnotify *notify;
    while ((notify = libpq.PQnotifies(session->conn)) != NULL) {
        session->whole = session->received;
        session->events.notified(session->events.context, notify->relname, notify->extra);
        libpq.PQfreemem(notify);
    }
}

/* Whatever is told to libpq, it may send a part of it at once. */
static void show_midway(const struct postgres_session *session, bool midway)
{
    if (session->midway != NULL)
        atomic_store(session->midway, midway);
}

static void flush(struct postgres_session *session)
{
    int left = libpq.PQflush(session->conn);
    if (left == 0)
        show_midway(session, false);
    if (left < 0)
        break_off_libpq(session);
    else
        loop_watch(session->loop, &session->watch, libpq.PQsocket(session->conn),
                   left > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

/* libpq makes room for a value or a message as long as its first bytes say: up to a gigabyte. */
static void refuse_long(struct postgres_session *session)
{
    struct crown_error err;
    (void)error_set(&err, ERROR_PROTOCOL,
                    "postgres: more than %zu MiB in one piece: the connection was closed",
                    POSTGRES_RESULT_MOST >> 20);
    explain(session, &err);
    break_off(session, &err);
}

static void ready(struct loop_watch *watch, unsigned events)
{
    struct postgres_session *session = container_of(watch, struct postgres_session, watch);
    bool alive = true;
    if ((events & LOOP_READ) != 0) {
        portion_begin();
        session->received = received_look(session->received, libpq.PQsocket(session->conn));
        alive = libpq.PQconsumeInput(session->conn) == 1;
    }
    if (alive && (events & LOOP_READ) != 0)
        session->heard_ns = loop_now(session->loop);
    take_answers(session);
    if (session->closed)
        return;
    take_notifications(session);
    if (!alive || libpq.PQstatus(session->conn) == CONNECTION_BAD)
        break_off_libpq(session);
    else if (session->received - session->whole > POSTGRES_RESULT_MOST)
        refuse_long(session);
    else if (events & LOOP_WRITE)
        flush(session);
}

/* --- questions */

static void overdue(struct loop_deadline *deadline)
{
    struct postgres_slot *slot = container_of(deadline, struct postgres_slot, deadline);
    struct postgres_session *session = slot->session;
    struct crown_error err;
    (void)error_set(&err, ERROR_TIMEOUT, "postgres: no answer within %s s",
                    figure_about(clock_seconds_from_ns(slot->timeout_ns)).text);
    explain(session, &err);
    if (!session->keep) {
        break_off(session, &err);
        return;
    }
    struct postgres_request *request = slot->request;
    slot->request = NULL;
    if (request != NULL)
        postgres_request_fail(request, &err);
}

/* @return the place of the statement among those that the server keeps, or -1. @param is_new
 * whether the server has to be told of it first. */
static int keep(struct postgres_session *session, const struct postgres_request *request,
                bool *is_new)
{
    *is_new = false;
    if (!request->repeated || session->keeps_none)
        return -1;
    for (int i = 0; i < session->kept_count; i++)
        if (strcmp(session->kept[i], request->sql) == 0)
            return i;
    char *copy = session->kept_count < KEPT_MOST ? strdup(request->sql) : NULL;
    if (copy == NULL)
        return -1;
    session->kept[session->kept_count] = copy;
    *is_new = true;
    return session->kept_count++;
}

/* A lock that somebody else holds is waited for a shorter time than the answer is. */
static bool tell_bounds(const struct postgres_session *session, int64_t timeout_ns)
{
    static const char sql[] = "SELECT set_config('lock_timeout', $1, true), "
                              "set_config('statement_timeout', $2, true)";
    char lock[24], statement[24];
    const char *const values[] = {lock, statement};
    long long ms = (long long)(timeout_ns / NS_PER_MS);
    (void)snprintf(lock, sizeof(lock), "%lld", ms * 3 / 4 > 1 ? ms * 3 / 4 : 1);
    (void)snprintf(statement, sizeof(statement), "%lld", ms > 1 ? ms : 1);
    return libpq.PQsendQueryParams(session->conn, sql, 2, NULL, values, NULL, NULL, 0) == 1;
}

static bool ask(struct postgres_session *session, struct postgres_slot *slot,
                const struct postgres_request *request)
{
    const char *const *values = (const char *const *)request->values;
    char name[32];
    slot->tells = session->bounded;
    if (slot->tells && !tell_bounds(session, request->timeout_ns))
        return false;
    int place = keep(session, request, &slot->prepares);
    slot->prepared = place >= 0;
    if (!slot->prepared)
        return libpq.PQsendQueryParams(session->conn, request->sql, request->value_count, NULL,
                                       values, NULL, NULL, 0) == 1;
    (void)snprintf(name, sizeof(name), "crown_%d", place);
    return (!slot->prepares ||
            libpq.PQsendPrepare(session->conn, name, request->sql, 0, NULL) == 1) &&
           libpq.PQsendQueryPrepared(session->conn, name, request->value_count, values, NULL, NULL,
                                     0) == 1;
}

void postgres_session_send(struct postgres_session *session, struct postgres_request *request)
{
    struct postgres_slot *slot = session->closed ? NULL : calloc(1, sizeof(*slot));
    if (slot == NULL) {
        struct crown_error err = session->error;
        if (!session->closed)
            (void)error_set(&err, ERROR_MEMORY, "postgres: out of memory");
        postgres_request_fail(request, &err);
        return;
    }
    *slot = (struct postgres_slot){.session = session,
                                   .request = request,
                                   .deadline = {.fire = overdue},
                                   .timeout_ns = request->timeout_ns,
                                   .brief = request->brief};
    list_append(&session->slots, &slot->link);
    request->slot = slot;
    loop_at(session->loop, &slot->deadline,
            clock_add_ns(loop_now(session->loop), request->timeout_ns));
    show_midway(session, true);
    if (!ask(session, slot, request) || libpq.PQpipelineSync(session->conn) != 1) {
        break_off_libpq(session);
        return;
    }
    rows_one_by_one(session);
    flush(session);
}

void postgres_slot_abandon(struct postgres_slot *slot)
{
    slot->request = NULL;
}

struct postgres_session *postgres_session_new(struct loop *loop, PGconn *conn,
                                              const struct postgres_session_options *options,
                                              const struct postgres_session_events *events,
                                              struct crown_error *err)
{
    struct postgres_session *session = calloc(1, sizeof(*session));
    if (session == NULL || libpq.PQenterPipelineMode(conn) != 1) {
        (void)error_set(err, ERROR_MEMORY, "postgres: pipeline mode is not to be had");
        free(session);
        libpq.PQfinish(conn);
        return NULL;
    }
    *session = (struct postgres_session){.loop = loop,
                                         .conn = conn,
                                         .keep = options->keep,
                                         .bounded = options->bounded,
                                         .partings = options->partings,
                                         .watch = {.ready = ready},
                                         .heard_ns = loop_now(loop),
                                         .events = *events,
                                         .closing = {.run = tell_closed}};
    (void)snprintf(session->place, sizeof(session->place), "%s", options->place);
    list_init(&session->slots);
    portion_bound(libpq.PQsslStruct(conn, "OpenSSL")); /* NULL: it is plain */
    loop_watch(loop, &session->watch, libpq.PQsocket(conn), LOOP_READ);
    return session;
}

void postgres_session_free(struct postgres_session *session)
{
    struct crown_error err;
    if (session == NULL)
        return;
    (void)error_set(&err, ERROR_CLOSED, "closed");
    break_off(session, &err);
    loop_unpost(session->loop, &session->closing);
    forget_kept(session);
    free(session);
}

bool postgres_session_encrypted(const struct postgres_session *session)
{
    return libpq.PQsslInUse(session->conn) != 0 || libpq.PQgssEncInUse(session->conn) != 0;
}

void postgres_session_show_midway(struct postgres_session *session, _Atomic uint32_t *midway)
{
    session->midway = midway;
    show_midway(session, true);
    flush(session);
}

int64_t postgres_session_heard_ns(const struct postgres_session *session)
{
    return session->heard_ns;
}

bool postgres_session_idle(const struct postgres_session *session)
{
    return list_empty(&session->slots);
}

PGconn *postgres_session_conn(const struct postgres_session *session)
{
    return session->conn;
}

bool postgres_session_in_transaction(const struct postgres_session *session)
{
    return session->in_transaction;
}

#include "postgres/attempt.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loop/helper.h"
#include "net/received.h"
#include "postgres/blotted.h"

#define OPTIONS_MAX 16
#define LOGIN_MOST_MIB 1u /* that a server may say until the connection is open */

/* What the thread has. */
struct attempt {
    const char *keywords[OPTIONS_MAX + 1]; /* both lists end with NULL */
    char *values[OPTIONS_MAX + 1];
    size_t count;
    bool short_of_memory;
    PGconn *conn;
    struct crown_error error;
};

struct postgres_attempt {
    struct helper *helper;
    struct postgres_parting *parting; /* once it was given up */
    postgres_attempted *done;         /* NULL: it was given up */
    void *context;
    char place[POSTGRES_PLACE_SIZE]; /* the server, which a thread may be stuck with */
};

static void free_values(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->count; i++)
        free(attempt->values[i]);
    attempt->count = 0;
}

static void drop(void *work)
{
    struct attempt *attempt = work;
    free_values(attempt);
    libpq.PQfinish(attempt->conn);
    free(attempt);
}

static void quiet(void *context, const char *message)
{
    (void)context;
    (void)message; /* nobody reads notices */
}

static bool wait_for(const PGconn *conn, PostgresPollingStatusType status, int given_up)
{
    struct pollfd fds[] = {
        {.fd = libpq.PQsocket(conn), .events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT},
        {.fd = given_up, .events = POLLIN},
    };
    while (poll(fds, 2, -1) < 0) /* signals are blocked here; a debugger's stop is not */
        ;
    return fds[1].revents == 0;
}

/* libpq keeps notifications, and makes room for a message as long as its first bytes say.
 * @param received what came before; it is brought up to date. */
static bool says_too_much(struct attempt *attempt, uint64_t *received)
{
    *received = received_look(*received, libpq.PQsocket(attempt->conn));
    if (*received <= (uint64_t)LOGIN_MOST_MIB << 20)
        return false;
    (void)error_set(&attempt->error, ERROR_PROTOCOL,
                    "postgres: more than %u MiB before the connection was open", LOGIN_MOST_MIB);
    return true;
}

static void close_attempt(struct attempt *attempt)
{
    libpq.PQfinish(attempt->conn);
    attempt->conn = NULL;
}

static void fail(struct attempt *attempt)
{
    char *message = postgres_blotted(attempt->conn, libpq.PQerrorMessage(attempt->conn));
    bool refused = message != NULL && strstr(message, "Connection refused") != NULL;
    (void)postgres_error(message != NULL ? message : "postgres: out of memory",
                         refused ? ERROR_REFUSED : ERROR_STORE, &attempt->error);
    free(message);
    close_attempt(attempt);
}

static void connect_on_thread(void *work, int given_up)
{
    struct attempt *attempt = work;
    uint64_t received = 0;
    attempt->conn =
        libpq.PQconnectStartParams(attempt->keywords, (const char *const *)attempt->values, 1);
    free_values(attempt);
    if (attempt->conn == NULL) {
        (void)error_set(&attempt->error, ERROR_MEMORY, "postgres: out of memory");
        return;
    }
    (void)libpq.PQsetNoticeProcessor(attempt->conn, quiet, NULL);
    PostgresPollingStatusType status = libpq.PQstatus(attempt->conn) == CONNECTION_BAD
                                           ? PGRES_POLLING_FAILED
                                           : PGRES_POLLING_WRITING;
    while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
        if (!wait_for(attempt->conn, status, given_up))
            return;
        if (says_too_much(attempt, &received)) {
            close_attempt(attempt);
            return;
        }
        status = libpq.PQconnectPoll(attempt->conn);
    }
    if (status == PGRES_POLLING_OK && libpq.PQsetnonblocking(attempt->conn, 1) == 0)
        return;
    fail(attempt);
}

static void finished(void *context, void *work)
{
    struct attempt *attempt = work;
    struct postgres_attempt *handle = context;
    const struct postgres_attempt of = *handle;
    PGconn *conn = attempt->conn;
    const struct crown_error error = attempt->error;
    attempt->conn = NULL;
    drop(attempt);
    free(handle);
    if (of.done != NULL)
        of.done(of.context, conn, &error);
    else
        postgres_parting_take(of.parting, conn, false);
}

static void add(struct attempt *attempt, const char *keyword, const char *value)
{
    if (value == NULL)
        return;
    attempt->keywords[attempt->count] = keyword;
    attempt->values[attempt->count] = strdup(value);
    attempt->short_of_memory |= attempt->values[attempt->count] == NULL;
    attempt->count++;
}

/* The URL first, then what takes precedence over it. */
static void collect(struct attempt *attempt, const struct postgres_attempt_options *options)
{
    const struct postgres_targets *targets = options->targets;
    const struct postgres_target *target = &targets->items[options->target];
    char idle[16], user_timeout[24];
    int seconds = (int)(options->silence_ns / NS_PER_S);
    (void)snprintf(idle, sizeof(idle), "%d", seconds > 1 ? seconds : 1);
    (void)snprintf(user_timeout, sizeof(user_timeout), "%lld",
                   (long long)(options->silence_ns / NS_PER_MS));
    add(attempt, "dbname", options->url);
    add(attempt, "fallback_application_name", "crown-lua");
    add(attempt, "host", target->host);
    add(attempt, "hostaddr", options->address != NULL ? options->address : target->hostaddr);
    add(attempt, "port", target->port);
    if (!targets->has_gssencmode) /* it may talk to a ticket server for long */
        add(attempt, "gssencmode", "disable");
    if (!targets->has_session_attrs)
        add(attempt, "target_session_attrs", "read-write");
    if (!targets->has_keepalives) {
        add(attempt, "keepalives_idle", idle);
        add(attempt, "keepalives_interval", "1");
        add(attempt, "keepalives_count", "3");
    }
    if (!targets->has_user_timeout)
        add(attempt, "tcp_user_timeout", user_timeout);
}

void postgres_attempt_place(const struct postgres_attempt_options *options,
                            char place[POSTGRES_PLACE_SIZE])
{
    const struct postgres_target *target = &options->targets->items[options->target];
    const char *address = options->address != NULL ? options->address : target->hostaddr;
    const char *host = address != NULL ? address : target->host;
    (void)snprintf(place, POSTGRES_PLACE_SIZE, "%s:%s", host != NULL ? host : "the local server",
                   target->port != NULL ? target->port : "5432");
}

static struct attempt *new_attempt(const struct postgres_attempt_options *options)
{
    struct attempt *attempt = calloc(1, sizeof(*attempt));
    if (attempt == NULL)
        return NULL;
    collect(attempt, options);
    if (!attempt->short_of_memory)
        return attempt;
    drop(attempt);
    return NULL;
}

struct postgres_attempt *postgres_attempt(struct loop *loop,
                                          const struct postgres_attempt_options *options,
                                          postgres_attempted *done, void *context,
                                          struct crown_error *err)
{
    /* The connection is the process's, and so is the table that it is opened in. */
    static const struct helper_kind kind = {"postgres", connect_on_thread, finished, drop, false};
    struct postgres_attempt *handle = calloc(1, sizeof(*handle));
    struct attempt *attempt = new_attempt(options);
    if (handle == NULL || attempt == NULL) {
        (void)error_set(err, ERROR_MEMORY, "postgres: out of memory");
        goto fail;
    }
    handle->done = done;
    handle->context = context;
    postgres_attempt_place(options, handle->place);
    handle->helper = helper_start(loop, &kind, handle->place, attempt, handle, err);
    if (handle->helper != NULL)
        return handle;
fail:
    if (attempt != NULL)
        drop(attempt);
    free(handle);
    return NULL;
}

void postgres_attempt_give_up(struct postgres_attempt *attempt, struct postgres_partings *partings)
{
    if (attempt == NULL)
        return;
    attempt->done = NULL;
    attempt->parting = postgres_parting_begin(partings, attempt->place);
    helper_hurry(attempt->helper);
}

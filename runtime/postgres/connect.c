#include "postgres/connect.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "net/resolve.h"
#include "postgres/target.h"

#define ADDRESSES_MAX 16
#define OPTIONS_MAX 16

struct postgres_connect {
    struct loop *loop;
    char *url;
    int64_t timeout_ns, silence_ns;
    postgres_connected *done;
    void *context;
    struct postgres_targets targets;
    size_t target, failures;
    struct resolution *resolution;
    char addresses[ADDRESSES_MAX][NI_MAXHOST];
    size_t address_count, address;
    PGconn *conn;
    struct loop_watch watch;
    struct loop_deadline deadline;
    struct loop_job begin;
    struct crown_error error; /* of the last try */
};

static void try_target(struct postgres_connect *c);

static void drop_attempt(struct postgres_connect *c)
{
    loop_unwatch(&c->watch);
    loop_at_cancel(c->loop, &c->deadline);
    libpq.PQfinish(c->conn);
    c->conn = NULL;
}

static void free_all(struct postgres_connect *c)
{
    drop_attempt(c);
    resolution_cancel(c->resolution);
    loop_unpost(c->loop, &c->begin);
    postgres_targets_free(&c->targets);
    free(c->url);
    free(c);
}

static void finish(struct postgres_connect *c, PGconn *conn)
{
    postgres_connected *done = c->done;
    void *context = c->context;
    struct crown_error error = c->error;
    size_t length = strlen(error.message);
    if (conn == NULL && c->failures > 1)
        (void)snprintf(error.message + length, sizeof(error.message) - length,
                       " (the last of %zu tries)", c->failures);
    free_all(c);
    done(context, conn, &error);
}

struct options {
    const char *keywords[OPTIONS_MAX], *values[OPTIONS_MAX];
    size_t count;
    char idle[16], user_timeout[16];
};

static void add(struct options *options, const char *keyword, const char *value)
{
    if (value == NULL)
        return;
    options->keywords[options->count] = keyword;
    options->values[options->count++] = value;
}

/* The URL first, then what takes precedence over it. The lists end with NULL. */
static void collect(struct postgres_connect *c, const char *address, struct options *o)
{
    const struct postgres_target *target = &c->targets.items[c->target];
    int seconds = (int)(c->silence_ns / NS_PER_S);
    *o = (struct options){0};
    (void)snprintf(o->idle, sizeof(o->idle), "%d", seconds > 1 ? seconds : 1);
    (void)snprintf(o->user_timeout, sizeof(o->user_timeout), "%lld",
                   (long long)(c->silence_ns / NS_PER_MS));
    add(o, "dbname", c->url);
    add(o, "fallback_application_name", "crown-lua");
    add(o, "host", target->host);
    add(o, "hostaddr", address != NULL ? address : target->hostaddr);
    add(o, "port", target->port);
    if (!c->targets.has_gssencmode) /* it may talk to a ticket server in the way */
        add(o, "gssencmode", "disable");
    if (!c->targets.has_session_attrs)
        add(o, "target_session_attrs", "read-write");
    if (!c->targets.has_keepalives) {
        add(o, "keepalives_idle", o->idle);
        add(o, "keepalives_interval", "1");
        add(o, "keepalives_count", "3");
    }
    if (!c->targets.has_user_timeout)
        add(o, "tcp_user_timeout", o->user_timeout);
}

static void next(struct postgres_connect *c)
{
    drop_attempt(c);
    c->failures++;
    if (++c->address < c->address_count) {
        try_target(c);
        return;
    }
    c->address = c->address_count = 0;
    if (++c->target < c->targets.count)
        try_target(c);
    else
        finish(c, NULL);
}

static void quiet(void *context, const char *message)
{
    (void)context;
    log_debug("postgres: %.*s", (int)strcspn(message, "\n"), message);
}

/* libpq closes one socket and opens another under the same number as it goes (another protocol
 * version, no TLS): the watcher is made anew after every step, or the kernel never fires it. */
static void poll_step(struct postgres_connect *c)
{
    loop_unwatch(&c->watch);
    PostgresPollingStatusType status = libpq.PQconnectPoll(c->conn);
    if (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
        loop_watch(c->loop, &c->watch, libpq.PQsocket(c->conn),
                   status == PGRES_POLLING_READING ? LOOP_READ : LOOP_WRITE);
        return;
    }
    if (status == PGRES_POLLING_OK && libpq.PQsetnonblocking(c->conn, 1) == 0) {
        PGconn *conn = c->conn;
        c->conn = NULL;
        finish(c, conn);
        return;
    }
    bool refused = strstr(libpq.PQerrorMessage(c->conn), "Connection refused") != NULL;
    (void)postgres_error(libpq.PQerrorMessage(c->conn), refused ? ERROR_REFUSED : ERROR_STORE,
                         &c->error);
    next(c);
}

static void ready(struct loop_watch *watch, unsigned events)
{
    (void)events;
    poll_step(container_of(watch, struct postgres_connect, watch));
}

static const char *shown_host(const struct postgres_connect *c)
{
    const struct postgres_target *target = &c->targets.items[c->target];
    return target->host != NULL ? target->host : "the local server";
}

static void overdue(struct loop_deadline *deadline)
{
    struct postgres_connect *c = container_of(deadline, struct postgres_connect, deadline);
    (void)error_set(&c->error, ERROR_TIMEOUT, "connect to %s: no answer within %.3g s",
                    shown_host(c), (double)c->timeout_ns / (double)NS_PER_S);
    resolution_cancel(c->resolution);
    c->resolution = NULL;
    next(c);
}

static void start_attempt(struct postgres_connect *c, const char *address)
{
    struct options options;
    collect(c, address, &options);
    c->conn = libpq.PQconnectStartParams(options.keywords, options.values, 1);
    if (c->conn == NULL || libpq.PQstatus(c->conn) == CONNECTION_BAD) {
        if (c->conn == NULL)
            (void)error_set(&c->error, ERROR_MEMORY, "postgres: out of memory");
        else
            (void)postgres_error(libpq.PQerrorMessage(c->conn), ERROR_STORE, &c->error);
        next(c);
        return;
    }
    (void)libpq.PQsetNoticeProcessor(c->conn, quiet, NULL);
    loop_watch(c->loop, &c->watch, libpq.PQsocket(c->conn), LOOP_WRITE);
}

static void looked_up(void *context, const struct address *addresses, size_t count,
                      const struct crown_error *err)
{
    struct postgres_connect *c = context;
    c->resolution = NULL;
    c->address_count = 0;
    for (size_t i = 0; i < count && c->address_count < ADDRESSES_MAX; i++)
        if (getnameinfo((const struct sockaddr *)&addresses[i].storage, addresses[i].size,
                        c->addresses[c->address_count], NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0)
            c->address_count++;
    if (c->address_count == 0) {
        c->error = *err;
        next(c);
        return;
    }
    start_attempt(c, c->addresses[0]);
}

static void try_target(struct postgres_connect *c)
{
    const struct postgres_target *target = &c->targets.items[c->target];
    loop_at(c->loop, &c->deadline, clock_add_ns(loop_now(c->loop), c->timeout_ns));
    if (!postgres_target_needs_lookup(target) || c->address < c->address_count) {
        start_attempt(c, c->address < c->address_count ? c->addresses[c->address] : NULL);
        return;
    }
    struct resolver *resolver = resolver_get(c->loop, &c->error);
    if (resolver != NULL)
        c->resolution =
            resolve(resolver, target->host, target->port != NULL ? target->port : "5432", looked_up,
                    c, &c->error);
    if (c->resolution == NULL)
        next(c);
}

/* From the run queue, so that `done` never comes before the caller has its handle. */
static void begin(struct loop_job *job)
{
    try_target(container_of(job, struct postgres_connect, begin));
}

struct postgres_connect *postgres_connect(struct loop *loop, const char *url, int64_t timeout_ns,
                                          int64_t silence_ns, postgres_connected *done,
                                          void *context, struct crown_error *err)
{
    struct postgres_connect *c = calloc(1, sizeof(*c));
    if (c == NULL || (c->url = strdup(url)) == NULL) {
        free(c);
        (void)error_set(err, ERROR_MEMORY, "postgres: out of memory");
        return NULL;
    }
    c->loop = loop;
    c->timeout_ns = timeout_ns;
    c->silence_ns = silence_ns;
    c->done = done;
    c->context = context;
    c->watch.ready = ready;
    c->deadline.fire = overdue;
    c->begin.run = begin;
    if (postgres_targets_read(url, &c->targets, err) < 0) {
        free_all(c);
        return NULL;
    }
    loop_post(loop, &c->begin);
    return c;
}

void postgres_connect_cancel(struct postgres_connect *connect)
{
    if (connect != NULL)
        free_all(connect);
}

#include "postgres/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/retry.h"
#include "postgres/channels.h"
#include "postgres/connect.h"
#include "postgres/explain.h"
#include "postgres/parting.h"
#include "postgres/ping.h"
#include "postgres/session.h"
#include "postgres/target.h"
#include "postgres/waiting.h"

struct postgres_client {
    struct loop *loop;
    char *url;
    int64_t connect_timeout_ns, silence_ns;
    bool keep, setup, bounded;
    bool admitted; /* the connection is for everybody */
    struct postgres_client_events events;
    struct postgres_connect *connect; /* while connecting */
    struct postgres_session *session; /* while connected */
    struct postgres_partings *partings;
    uint64_t generation, last_generation;
    bool lost_in_transaction;
    bool told_connected, told_broken;
    struct postgres_waiting waiting;
    struct postgres_channels channels;
    struct postgres_ping ping;
    struct retry backoff;
    int64_t pause_ns; /* before the try that comes next, or is under way */
    struct loop_deadline retry;
    struct loop_deadline settled; /* armed while the connection is young */
    bool died_young;              /* the one before, or the one before that, … */
    struct crown_error last_error;
    struct crown_error unanswered; /* what is told while the first try goes on */
    int64_t since_ns, heard_ns;    /* of what is shown */
    uint64_t reconnects;
    char server[300]; /* the last one */
};

static void connect_now(struct postgres_client *client);

static void note_server(struct postgres_client *client)
{
    const PGconn *conn = postgres_session_conn(client->session);
    const char *host = libpq.PQhost(conn);
    (void)snprintf(client->server, sizeof(client->server), "%s:%s/%s",
                   host != NULL ? host : "postgres", libpq.PQport(conn), libpq.PQdb(conn));
}

/* What is shown is another state from now on. */
static void mark(struct postgres_client *client)
{
    client->since_ns = loop_now(client->loop);
}

/* The session ends; what it knew is kept. */
static void drop_session(struct postgres_client *client)
{
    if (client->session != NULL) {
        client->heard_ns = postgres_session_heard_ns(client->session);
        client->reconnects++;
        mark(client);
    }
    postgres_ping_stop(&client->ping);
    postgres_session_free(client->session);
    client->session = NULL;
    client->generation = 0;
}

static bool is_needed(const struct postgres_client *client)
{
    return !postgres_waiting_empty(&client->waiting) ||
           (!postgres_channels_empty(&client->channels) && !client->keep);
}

static void connect_later(struct postgres_client *client)
{
    client->pause_ns = retry_next_ns(&client->backoff);
    loop_at(client->loop, &client->retry, clock_add_ns(loop_now(client->loop), client->pause_ns));
}

static void tell_broken(struct postgres_client *client, const struct crown_error *err)
{
    client->last_error = *err;
    if (client->told_broken)
        return;
    client->told_broken = true;
    client->told_connected = false;
    client->events.state(client->events.context, false, "", err);
}

static void listens(void *context, const char *channel)
{
    struct postgres_client *client = context;
    client->events.notified(client->events.context, channel, NULL);
}

/* --- connecting */

static void session_closed(void *context, const struct crown_error *err)
{
    struct postgres_client *client = context;
    uint64_t generation = client->generation;
    const struct crown_error why = *err; /* the session's own, which ends here */
    client->lost_in_transaction =
        !client->bounded && postgres_session_in_transaction(client->session);
    drop_session(client);
    client->died_young = !client->admitted || loop_at_armed(&client->settled);
    loop_at_cancel(client->loop, &client->settled);
    tell_broken(client, &why);
    client->events.closed(client->events.context, generation, &why);
    if (client->died_young || is_needed(client))
        connect_later(
            client); /* many lose theirs at the same moment, and one that dies young failed */
}

static void notified(void *context, const char *channel, const char *payload)
{
    struct postgres_client *client = context;
    client->events.notified(client->events.context, channel, payload);
}

static void send_waiting(struct postgres_client *client)
{
    while (client->session != NULL && client->admitted) {
        struct postgres_request *request = postgres_waiting_take(&client->waiting);
        if (request == NULL)
            return;
        postgres_client_send(client, request);
    }
}

static void tell_good(struct postgres_client *client)
{
    client->told_broken = client->died_young = false;
    if (!client->told_connected)
        client->events.state(client->events.context, true, client->server, NULL);
    client->told_connected = true;
}

static void settled(struct loop_deadline *deadline)
{
    struct postgres_client *client = container_of(deadline, struct postgres_client, settled);
    retry_reset(&client->backoff);
    client->pause_ns = 0;
    client->last_error.code = ERROR_NONE;
    mark(client);
    tell_good(client);
}

/* After one that died young, a connection is told when it has proved good. */
static void admit(struct postgres_client *client)
{
    client->admitted = true;
    mark(client);
    loop_at(client->loop, &client->settled, clock_add_ns(loop_now(client->loop), RETRY_SETTLED_NS));
    if (!client->died_young)
        tell_good(client);
    if (!client->keep) /* of one that is kept nothing is known by a statement without an answer */
        postgres_ping_start(&client->ping, client->session);
    postgres_channels_listen(&client->channels, NULL, client->session);
    send_waiting(client);
}

static void refuse(struct postgres_client *client, const struct crown_error *err)
{
    drop_session(client);
    mark(client);
    tell_broken(client, err);
    postgres_waiting_fail(&client->waiting, err);
    connect_later(client);
}

/* The server is there: what is told from now on is not about ports and firewalls. */
static void note_silent_setup(struct postgres_client *client, const char *place)
{
    (void)error_set(&client->unanswered, ERROR_TIMEOUT,
                    "postgres at %s: the server took the connection, and has told nothing of the "
                    "tables since. Another session may hold a lock on one of them (see "
                    "pg_locks), or a pooler in between has no free connection",
                    place);
}

static void connected(void *context, PGconn *conn, const char *place, const struct crown_error *err)
{
    struct postgres_client *client = context;
    const struct postgres_session_options options = {.keep = client->keep,
                                                     .bounded = client->bounded,
                                                     .partings = client->partings,
                                                     .place = place};
    const struct postgres_session_events events = {
        .closed = session_closed, .notified = notified, .context = client};
    struct crown_error problem;
    client->connect = NULL;
    if (conn != NULL) {
        client->session = postgres_session_new(client->loop, conn, &options, &events, &problem);
        err = &problem;
    }
    if (client->session == NULL) {
        refuse(client, err);
        return;
    }
    client->generation = ++client->last_generation;
    client->admitted = false;
    note_server(client);
    mark(client);
    if (client->setup) {
        note_silent_setup(client, client->server);
        client->events.connected(client->events.context, client->generation);
    } else {
        admit(client);
    }
}

void postgres_client_admit(struct postgres_client *client, uint64_t generation,
                           const struct crown_error *err)
{
    if (client->session == NULL || generation != client->generation || client->admitted)
        return;
    if (err != NULL)
        refuse(client, err);
    else
        admit(client);
}

/* A try may take as long as the pause before it: on a busy host a login can take longer than any
 * question may. */
static int64_t patience_ns(const struct postgres_client *client)
{
    return client->pause_ns > client->connect_timeout_ns ? client->pause_ns
                                                         : client->connect_timeout_ns;
}

static void connect_now(struct postgres_client *client)
{
    struct crown_error err;
    if (client->connect != NULL || client->session != NULL || loop_at_armed(&client->retry))
        return;
    mark(client);
    client->connect =
        postgres_connect(client->loop, client->url, patience_ns(client), client->silence_ns,
                         client->partings, connected, client, &err);
    if (client->connect != NULL)
        return;
    tell_broken(client, &err);
    postgres_waiting_fail(&client->waiting, &err);
    connect_later(client);
}

static void retry_due(struct loop_deadline *retry)
{
    struct postgres_client *client = container_of(retry, struct postgres_client, retry);
    if (is_needed(client))
        connect_now(client);
}

/* --- requests */

void postgres_client_send(struct postgres_client *client, struct postgres_request *request)
{
    struct crown_error err;
    bool other = request->generation != 0 && request->generation != client->generation;
    if (other || (client->lost_in_transaction && request->sql != NULL)) {
        client->lost_in_transaction = client->lost_in_transaction && other;
        (void)error_set(&err, ERROR_CLOSED, "postgres at %s: the connection was lost%s%s",
                        client->server, other ? "" : " in the middle of a transaction",
                        client->last_error.code != ERROR_NONE && other ? " meanwhile" : "");
        postgres_request_fail(request, &err);
        return;
    }
    if (client->session == NULL || (!client->admitted && request->generation == 0)) {
        postgres_waiting_add(&client->waiting, request);
        connect_now(client);
        return;
    }
    request->generation_used = client->generation;
    if (request->sql == NULL)
        op_complete(&request->op);
    else
        postgres_session_send(client->session, request);
}

/* --- the rest */

int postgres_client_listen(struct postgres_client *client, const char *channel,
                           struct crown_error *err)
{
    int added = postgres_channels_add(&client->channels, channel, err);
    if (added <= 0)
        return added;
    if (client->session != NULL && client->admitted)
        postgres_channels_listen(&client->channels, channel, client->session);
    else
        connect_now(client);
    return 0;
}

void postgres_client_unlisten(struct postgres_client *client, const char *channel)
{
    postgres_channels_remove(&client->channels, channel, client->session);
}

void postgres_client_disconnect(struct postgres_client *client)
{
    drop_session(client);
    client->told_connected = false;
    loop_at_cancel(client->loop, &client->settled);
    if (is_needed(client))
        connect_now(client);
}

static void note_unanswered(struct postgres_client *client, const struct postgres_targets *targets)
{
    const struct postgres_target *first = &targets->items[0];
    (void)error_set(&client->unanswered, ERROR_TIMEOUT, "no connection in time");
    postgres_explain(first->host != NULL ? first->host : first->hostaddr, first->port,
                     POSTGRES_SILENT, &client->unanswered);
}

/* Longer than a server that is well takes to hear that a connection was given up. */
static int64_t forgotten_first_ns(const struct postgres_client_options *options)
{
    return 2 * (options->connect_timeout_ns > NS_PER_S ? options->connect_timeout_ns : NS_PER_S);
}

struct postgres_client *postgres_client_new(struct loop *loop,
                                            const struct postgres_client_options *options,
                                            const struct postgres_client_events *events,
                                            struct crown_error *err)
{
    struct postgres_targets targets;
    if (postgres_targets_read(options->url, &targets, err) < 0)
        return NULL;
    struct postgres_client *client = calloc(1, sizeof(*client));
    if (client != NULL) {
        note_unanswered(client, &targets);
        client->partings = postgres_partings_new(loop, forgotten_first_ns(options));
    }
    postgres_targets_free(&targets);
    if (client == NULL || client->partings == NULL ||
        (client->url = strdup(options->url)) == NULL) {
        if (client != NULL)
            postgres_partings_leave(client->partings);
        free(client);
        (void)error_set(err, ERROR_MEMORY, "postgres: out of memory");
        return NULL;
    }
    client->loop = loop;
    client->connect_timeout_ns = options->connect_timeout_ns;
    client->silence_ns = options->silence_ns;
    client->keep = options->keep;
    client->setup = options->setup;
    client->bounded = options->bounded;
    client->events = *events;
    retry_init(&client->backoff, RETRY_FIRST_NS, RETRY_MOST_NS, random_kernel());
    mark(client);
    client->retry.fire = retry_due;
    client->settled.fire = settled;
    postgres_waiting_init(&client->waiting, loop, &client->last_error, &client->unanswered);
    postgres_channels_init(&client->channels, loop, listens, client);
    postgres_ping_init(&client->ping, loop, &client->channels, client->connect_timeout_ns);
    return client;
}

void postgres_client_free(struct postgres_client *client)
{
    if (client == NULL)
        return;
    postgres_connect_cancel(client->connect);
    postgres_ping_stop(&client->ping);
    postgres_session_free(client->session);
    postgres_waiting_end(&client->waiting);
    postgres_channels_free(&client->channels);
    loop_at_cancel(client->loop, &client->retry);
    loop_at_cancel(client->loop, &client->settled);
    postgres_partings_leave(client->partings);
    free(client->url);
    free(client);
}

uint64_t postgres_client_generation(const struct postgres_client *client)
{
    return client->generation;
}

bool postgres_client_admitted(const struct postgres_client *client)
{
    return client->session != NULL && client->admitted;
}

int postgres_client_server_pid(const struct postgres_client *client)
{
    return client->session != NULL ? libpq.PQbackendPID(postgres_session_conn(client->session)) : 0;
}

int postgres_client_socket(const struct postgres_client *client)
{
    return client->session != NULL ? libpq.PQsocket(postgres_session_conn(client->session)) : -1;
}

int postgres_client_share_socket(struct postgres_client *client, _Atomic uint32_t *midway)
{
    if (client->session == NULL || postgres_session_encrypted(client->session))
        return -1;
    postgres_session_show_midway(client->session, midway);
    return client->session != NULL ? postgres_client_socket(client) : -1;
}

static const char *state_of(const struct postgres_client *client)
{
    if (client->connect != NULL)
        return postgres_connect_step(client->connect);
    if (client->session == NULL)
        return client->last_error.code != ERROR_NONE ? "broken" : "idle";
    if (!client->admitted)
        return "setting up";
    return loop_at_armed(&client->settled) ? "open" : "proven";
}

void postgres_client_condition(const struct postgres_client *client,
                               struct postgres_client_condition *condition)
{
    *condition = (struct postgres_client_condition){
        .state = state_of(client),
        .since_ns = client->since_ns,
        .heard_ns =
            client->session != NULL ? postgres_session_heard_ns(client->session) : client->heard_ns,
        .reconnects = client->reconnects,
        .connections = postgres_partings_count(client->partings) +
                       (client->session != NULL || client->connect != NULL ? 1 : 0),
        .limit = postgres_partings_limit(client->partings) + 1,
        .problem = client->last_error.code != ERROR_NONE ? client->last_error.message : NULL};
    (void)snprintf(condition->server, sizeof(condition->server), "%s", client->server);
}

#include "http/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "http/guest.h"
#include "http/microhttpd.h"

#define CONNECTION_MEMORY 16384u /* request line and headers; more is refused */
#define IDLE_S 10u

struct http_server {
    struct loop *loop;
    struct loop_watch watch;
    struct loop_deadline timer;
    struct MHD_Daemon *daemon;
    http_handler *handler;
    void *context;
    struct http_guests guests;
    unsigned port;
    unsigned connections;  /* after the last run */
    struct list exchanges; /* that wait for an answer */
    struct loop_job resumed;
};

/* From the request's headers to its answer: MHD asks again and again, and is told to wait. */
struct http_exchange {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct list_node link; /* while it waits */
    struct MHD_Response *response;
    unsigned status;
    bool asked;
};

static const char *const headers[][2] = {
    {"Cache-Control", "no-store"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
     "'self'; "
     "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
};

static struct MHD_Response *make_response(const struct http_answer *answer)
{
    struct MHD_Response *response = microhttpd.MHD_create_response_from_buffer(
        answer->size, (void *)answer->body, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return NULL;
    /* A header that finds no memory is left out: none of them is what was asked for. */
    (void)microhttpd.MHD_add_response_header(response, "Content-Type", answer->type);
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        (void)microhttpd.MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)microhttpd.MHD_add_response_header(response, "Allow", "GET, HEAD");
    return response;
}

static enum MHD_Result respond(struct http_exchange *exchange)
{
    if (exchange->response == NULL)
        return MHD_NO; /* no memory, or the server closes */
    return microhttpd.MHD_queue_response(exchange->connection, exchange->status,
                                         exchange->response);
}

static void set_answer(struct http_exchange *exchange, const struct http_answer *answer)
{
    exchange->status = answer->status;
    exchange->response = make_response(answer);
}

static struct http_exchange *begin(struct http_server *server, struct MHD_Connection *connection)
{
    struct http_exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange != NULL) {
        exchange->server = server;
        exchange->connection = connection;
    }
    return exchange;
}

static bool is_get(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

static enum MHD_Result requested(void *context, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **state)
{
    static const struct http_answer not_allowed = {.status = MHD_HTTP_METHOD_NOT_ALLOWED,
                                                   .type = "text/plain; charset=utf-8",
                                                   .body = "GET only\n",
                                                   .size = sizeof("GET only\n") - 1};
    struct http_server *server = context;
    struct http_exchange *exchange = *state;
    (void)version;
    (void)upload;
    if (exchange == NULL) {
        /* The headers are there; it is asked when the request is complete. */
        *state = exchange = begin(server, connection);
        if (exchange == NULL)
            return MHD_NO;
        const struct http_answer *refusal = http_guest_refusal(connection);
        if (refusal == NULL)
            return MHD_YES;
        set_answer(exchange, refusal);
        return respond(exchange); /* before its body, which ends the connection */
    }
    if (*upload_size > 0) {
        *upload_size = 0; /* nobody wants a body */
        return MHD_YES;
    }
    if (exchange->asked)
        return respond(exchange);
    exchange->asked = true;
    if (!is_get(method)) {
        set_answer(exchange, &not_allowed);
        return respond(exchange);
    }
    http_guest_allow(connection, TIME_NEVER); /* it waits for us */
    microhttpd.MHD_suspend_connection(connection);
    list_append(&server->exchanges, &exchange->link);
    server->handler(server->context, exchange, url);
    return MHD_YES;
}

static void completed(void *context, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode how)
{
    struct http_exchange *exchange = *state;
    (void)context;
    if (how == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        http_guest_allow(connection, HTTP_REQUEST_NS); /* for the next one */
    if (exchange == NULL)
        return;
    list_remove(&exchange->link);
    if (exchange->response != NULL)
        microhttpd.MHD_destroy_response(exchange->response);
    free(exchange);
    *state = NULL;
}

static void resume(struct http_exchange *exchange)
{
    list_remove(&exchange->link);
    microhttpd.MHD_resume_connection(exchange->connection);
}

const char *http_exchange_argument(const struct http_exchange *exchange, const char *name)
{
    return microhttpd.MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND,
                                                  name);
}

void http_exchange_answer(struct http_exchange *exchange, const struct http_answer *answer)
{
    struct http_server *server = exchange->server;
    set_answer(exchange, answer);
    http_guest_allow(exchange->connection, HTTP_ANSWER_NS);
    resume(exchange);
    /* Not from here: the handler may have answered at once, from inside the library. */
    loop_post(server->loop, &server->resumed);
}

static void arm(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    if (microhttpd.MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES)
        loop_at(server->loop, &server->timer,
                clock_add_ns(loop_now(server->loop), (int64_t)timeout_ms * NS_PER_MS));
    else
        loop_at_cancel(server->loop, &server->timer);
}

static unsigned count_connections(struct http_server *server)
{
    const union MHD_DaemonInfo *found =
        microhttpd.MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return found != NULL ? found->num_connections : 0;
}

/* Where it could accept no more, the library listens again at the run after one of its connections
 * has gone. */
static void run(struct http_server *server)
{
    (void)microhttpd.MHD_run(server->daemon); /* what fails, fails for one connection */
    unsigned before = server->connections;
    server->connections = count_connections(server);
    if (server->connections < before)
        loop_post(server->loop, &server->resumed);
    arm(server);
}

static void ready(struct loop_watch *watch, unsigned events)
{
    (void)events;
    run(container_of(watch, struct http_server, watch));
}

static void due(struct loop_deadline *timer)
{
    run(container_of(timer, struct http_server, timer));
}

static void resumed(struct loop_job *job)
{
    run(container_of(job, struct http_server, resumed));
}

static int start(struct http_server *server, const char *address, unsigned port,
                 struct crown_error *err)
{
    struct address bound;
    if (!address_is_number(address) || address_parse(&bound, address, port) < 0)
        return error_set(err, ERROR_USAGE, "http: '%s' is no IP address", address);
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                     (address_plain(&bound)->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    errno = 0;
    server->daemon = microhttpd.MHD_start_daemon(
        flags, (uint16_t)port, NULL, NULL, requested, server, MHD_OPTION_SOCK_ADDR,
        address_plain(&bound), MHD_OPTION_CONNECTION_LIMIT, HTTP_GUESTS_MAX + HTTP_GUESTS_LEAVING,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, http_guest_notify, &server->guests, MHD_OPTION_END);
    if (server->daemon == NULL)
        return error_set_errno(err, errno, "http: listen on %s port %u", address, port);
    const union MHD_DaemonInfo *epoll =
        microhttpd.MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    const union MHD_DaemonInfo *found =
        microhttpd.MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (epoll == NULL || found == NULL)
        return error_set(err, ERROR_SYSTEM, "http: the library does not say what to wait for");
    server->port = found->port;
    server->watch.ready = ready;
    loop_watch(server->loop, &server->watch, epoll->epoll_fd, LOOP_READ);
    arm(server);
    return 0;
}

struct http_server *http_server_open(struct loop *loop, const char *address, unsigned port,
                                     http_handler *handler, void *context, struct crown_error *err)
{
    if (microhttpd_load(err) < 0)
        return NULL;
    struct http_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        (void)error_set(err, ERROR_MEMORY, "http: out of memory");
        return NULL;
    }
    server->loop = server->guests.loop = loop;
    list_init(&server->guests.all);
    server->handler = handler;
    server->context = context;
    server->timer.fire = due;
    server->resumed.run = resumed;
    list_init(&server->exchanges);
    if (start(server, address != NULL ? address : "127.0.0.1", port, err) < 0) {
        http_server_close(server);
        return NULL;
    }
    return server;
}

unsigned http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_close(struct http_server *server)
{
    if (server == NULL)
        return;
    if (server->watch.ready != NULL)
        loop_unwatch(&server->watch);
    loop_at_cancel(server->loop, &server->timer);
    loop_unpost(server->loop, &server->resumed);
    /* The library wants none suspended: they find no response, and are closed. */
    while (!list_empty(&server->exchanges))
        resume(container_of(list_first(&server->exchanges), struct http_exchange, link));
    if (server->daemon != NULL)
        microhttpd.MHD_stop_daemon(server->daemon);
    free(server);
}

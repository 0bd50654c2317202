#include "http/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/container.h"
#include "http/microhttpd.h"

#define CONNECTIONS_MAX 64u
#define CONNECTION_MEMORY 16384u /* request line and headers; more is refused */
#define IDLE_S 10u

struct http_server {
    struct loop *loop;
    struct loop_watch watch;
    struct loop_deadline timer;
    struct MHD_Daemon *daemon;
    http_handler *handler;
    void *context;
    unsigned port;
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

static enum MHD_Result respond(struct MHD_Connection *connection, const struct http_answer *answer)
{
    struct MHD_Response *response = microhttpd.MHD_create_response_from_buffer(
        answer->size, (void *)answer->body, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    /* A header that finds no memory is left out: none of them is what was asked for. */
    (void)microhttpd.MHD_add_response_header(response, "Content-Type", answer->type);
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        (void)microhttpd.MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)microhttpd.MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result queued = microhttpd.MHD_queue_response(connection, answer->status, response);
    microhttpd.MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result requested(void *context, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **state)
{
    static char begun;
    const struct http_server *server = context;
    struct http_answer answer = {.status = MHD_HTTP_METHOD_NOT_ALLOWED,
                                 .type = "text/plain; charset=utf-8",
                                 .body = "GET only\n",
                                 .size = sizeof("GET only\n") - 1};
    (void)version;
    (void)upload;
    if (*state == NULL) {
        *state = &begun; /* the headers are there; answered when the request is complete */
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0; /* nobody wants a body */
        return MHD_YES;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0)
        server->handler(server->context, url, &answer);
    return respond(connection, &answer);
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

static void run(struct http_server *server)
{
    (void)microhttpd.MHD_run(server->daemon); /* what fails, fails for one connection */
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

static int start(struct http_server *server, const char *address, unsigned port,
                 struct crown_error *err)
{
    struct address bound;
    if (!address_is_number(address) || address_parse(&bound, address, port) < 0)
        return error_set(err, ERROR_USAGE, "http: '%s' is no IP address", address);
    unsigned flags =
        MHD_USE_EPOLL | (address_plain(&bound)->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    errno = 0;
    server->daemon = microhttpd.MHD_start_daemon(
        flags, (uint16_t)port, NULL, NULL, requested, server, MHD_OPTION_SOCK_ADDR,
        address_plain(&bound), MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
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
    server->loop = loop;
    server->handler = handler;
    server->context = context;
    server->timer.fire = due;
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
    if (server->daemon != NULL)
        microhttpd.MHD_stop_daemon(server->daemon);
    free(server);
}

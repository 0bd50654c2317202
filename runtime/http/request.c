#include "http/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "base/log.h"
#include "http/curl.h"

#define CONNECT_TIMEOUT_MS 5000L
#define HEADERS_MAX (64u << 10)

/* One set of transfers a loop; a process has one loop, tests may have more. */
struct transfers {
    struct transfers *next;
    struct list requests;
    struct loop *loop;
    CURLM *multi;
    struct loop_deadline timer;
};

struct http_request {
    struct op op;
    struct list_node link; /* among the transfers' */
    struct transfers *transfers;
    CURL *easy;
    struct curl_slist *headers_sent;
    char *body_sent;
    struct buffer headers, body;
    size_t most, taken;
    bool stream, over;
    struct crown_error error;
};

/* A socket of libcurl's, watched as it says. */
struct socket_watch {
    struct loop_watch watch;
    struct transfers *transfers;
};

static struct transfers *all;

static bool has_line(const struct http_request *request)
{
    return request->body.size > request->taken &&
           memchr(request->body.bytes + request->taken, '\n',
                  request->body.size - request->taken) != NULL;
}

static void finish(struct http_request *request, CURLcode result)
{
    request->over = true;
    if (result != CURLE_OK && request->error.code == ERROR_NONE) {
        const char *url = NULL;
        (void)curl.curl_easy_getinfo(request->easy, CURLINFO_EFFECTIVE_URL,
                                     &url); /* NULL: not known */
        (void)error_set(&request->error,
                        result == CURLE_OPERATION_TIMEDOUT ? ERROR_TIMEOUT : ERROR_CLOSED, "%s: %s",
                        url != NULL ? url : "http", curl.curl_easy_strerror(result));
        log_redact(request->error.message);
    }
    op_complete(&request->op);
}

static void take_finished(struct transfers *transfers)
{
    int left;
    CURLMsg *message;
    while ((message = curl.curl_multi_info_read(transfers->multi, &left)) != NULL) {
        char *private = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result;
        (void)curl.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        finish((struct http_request *)(void *)private, result);
    }
}

static void act(struct transfers *transfers, curl_socket_t fd, int events)
{
    int running;
    (void)curl.curl_multi_socket_action(transfers->multi, fd, events, &running);
    take_finished(transfers);
}

static void socket_ready(struct loop_watch *watch, unsigned events)
{
    const struct socket_watch *socket = container_of(watch, struct socket_watch, watch);
    act(socket->transfers, watch->fd,
        ((events & LOOP_READ) != 0 ? CURL_CSELECT_IN : 0) |
            ((events & LOOP_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct transfers *transfers = context;
    struct socket_watch *socket = known;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL)
            loop_unwatch(&socket->watch);
        free(socket);
        (void)curl.curl_multi_assign(transfers->multi, fd, NULL); /* it is known */
        return 0;
    }
    if (socket == NULL) {
        socket = calloc(1, sizeof(*socket));
        if (socket == NULL)
            return -1;
        socket->transfers = transfers;
        socket->watch.ready = socket_ready;
        (void)curl.curl_multi_assign(transfers->multi, fd, socket);
    }
    loop_watch(transfers->loop, &socket->watch, fd,
               ((what & CURL_POLL_IN) != 0 ? LOOP_READ : 0) |
                   ((what & CURL_POLL_OUT) != 0 ? LOOP_WRITE : 0));
    return 0;
}

static void timer_due(struct loop_deadline *timer)
{
    act(container_of(timer, struct transfers, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int timer_wanted(CURLM *multi, long timeout_ms, void *context)
{
    struct transfers *transfers = context;
    (void)multi;
    if (timeout_ms < 0)
        loop_at_cancel(transfers->loop, &transfers->timer);
    else
        loop_at(transfers->loop, &transfers->timer,
                clock_add_ns(loop_now(transfers->loop), timeout_ms * NS_PER_MS));
    return 0;
}

static struct transfers *transfers_of(struct loop *loop, struct crown_error *err)
{
    struct transfers *transfers = all;
    while (transfers != NULL && transfers->loop != loop)
        transfers = transfers->next;
    if (transfers != NULL || curl_load(err) < 0)
        return transfers;
    transfers = calloc(1, sizeof(*transfers));
    if (transfers != NULL)
        transfers->multi = curl.curl_multi_init();
    if (transfers == NULL || transfers->multi == NULL) {
        free(transfers);
        (void)error_set(err, ERROR_MEMORY, "http: out of memory");
        return NULL;
    }
    transfers->loop = loop;
    list_init(&transfers->requests);
    transfers->timer.fire = timer_due;
    /* These options are known to every libcurl that has the functions. */
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers);
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
    transfers->next = all;
    all = transfers;
    return transfers;
}

static size_t take(struct http_request *request, struct buffer *into, const char *bytes,
                   size_t size, size_t most)
{
    if (into->size - (into == &request->body ? request->taken : 0) + size > most) {
        (void)error_set(&request->error, ERROR_PROTOCOL, "an answer of more than %zu bytes", most);
        return 0; /* ends the transfer */
    }
    return buffer_append(into, bytes, size) == 0 ? size : 0;
}

static size_t header_came(char *bytes, size_t one, size_t size, void *context)
{
    struct http_request *request = context;
    if (one * size > 5 && memcmp(bytes, "HTTP/", 5) == 0)
        buffer_drop(&request->headers, request->headers.size); /* of a 100 Continue, or a proxy */
    return take(request, &request->headers, bytes, one * size, HEADERS_MAX);
}

static size_t body_came(char *bytes, size_t one, size_t size, void *context)
{
    struct http_request *request = context;
    size_t taken = take(request, &request->body, bytes, one * size, request->most);
    if (request->stream && has_line(request))
        op_complete(&request->op);
    return taken;
}

static void cancelled(struct op *op)
{
    (void)op; /* a stream is asked again; a request is freed by its owner */
}

#define SET(option, value)                                                                         \
    (result = result == CURLE_OK ? curl.curl_easy_setopt(easy, option, value) : result)

static CURLcode set_security(CURL *easy, const struct http_options *options)
{
    CURLcode result = CURLE_OK;
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_SSL_VERIFYPEER, options->insecure ? 0L : 1L);
    SET(CURLOPT_SSL_VERIFYHOST, options->insecure ? 0L : 2L);
    if (options->ca != NULL)
        SET(CURLOPT_CAINFO, options->ca);
    if (options->cert != NULL)
        SET(CURLOPT_SSLCERT, options->cert);
    if (options->key != NULL)
        SET(CURLOPT_SSLKEY, options->key);
    return result;
}

static CURLcode set_up(struct http_request *request, const struct http_options *options)
{
    CURL *easy = request->easy;
    CURLcode result = set_security(easy, options);
    SET(CURLOPT_URL, options->url);
    SET(CURLOPT_PRIVATE, request);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    if (options->timeout_ns != TIME_NEVER)
        SET(CURLOPT_TIMEOUT_MS, (long)(options->timeout_ns / NS_PER_MS + 1));
    SET(CURLOPT_HEADERFUNCTION, header_came);
    SET(CURLOPT_HEADERDATA, request);
    SET(CURLOPT_WRITEFUNCTION, body_came);
    SET(CURLOPT_WRITEDATA, request);
    SET(CURLOPT_HTTPHEADER, request->headers_sent);
    if (request->body_sent != NULL) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)options->body_size);
        SET(CURLOPT_POSTFIELDS, request->body_sent);
    }
    if (options->method != NULL && strcmp(options->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    else if (options->method != NULL)
        SET(CURLOPT_CUSTOMREQUEST, options->method);
    return result;
}

static bool copy_words(struct http_request *request, const struct http_options *options)
{
    for (const char *const *header = options->headers; header != NULL && *header != NULL;
         header++) {
        struct curl_slist *longer = curl.curl_slist_append(request->headers_sent, *header);
        if (longer == NULL)
            return false;
        request->headers_sent = longer;
    }
    if (options->body == NULL)
        return true;
    request->body_sent = malloc(options->body_size + 1);
    if (request->body_sent != NULL)
        memcpy(request->body_sent, options->body, options->body_size);
    return request->body_sent != NULL;
}

struct http_request *http_request_start(struct loop *loop, const struct http_options *options,
                                        struct crown_error *err)
{
    struct transfers *transfers = transfers_of(loop, err);
    struct http_request *request = transfers != NULL ? calloc(1, sizeof(*request)) : NULL;
    if (transfers != NULL && request == NULL)
        (void)error_set(err, ERROR_MEMORY, "http: out of memory");
    if (request == NULL)
        return NULL;
    request->transfers = transfers;
    list_append(&transfers->requests, &request->link);
    request->most = options->most;
    request->stream = options->stream;
    op_init(&request->op, loop, cancelled);
    request->easy = curl.curl_easy_init();
    CURLcode result = request->easy != NULL && copy_words(request, options)
                          ? set_up(request, options)
                          : CURLE_OUT_OF_MEMORY;
    if (result == CURLE_OK &&
        curl.curl_multi_add_handle(transfers->multi, request->easy) == CURLM_OK)
        return request;
    (void)error_set(err, ERROR_USAGE, "http: %s", curl.curl_easy_strerror(result));
    http_request_free(request);
    return NULL;
}

struct op *http_request_op(struct http_request *request)
{
    return &request->op;
}

bool http_request_over(const struct http_request *request)
{
    return request->over;
}

const struct crown_error *http_request_error(const struct http_request *request)
{
    return &request->error;
}

int http_request_status(const struct http_request *request)
{
    long status = 0;
    if (request->easy == NULL)
        return 0;
    (void)curl.curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status); /* 0: not known */
    return (int)status;
}

const char *http_request_headers(const struct http_request *request, size_t *size)
{
    *size = request->headers.size;
    return request->headers.size > 0 ? request->headers.bytes : "";
}

const char *http_request_body(const struct http_request *request, size_t *size)
{
    *size = request->body.size - request->taken;
    return *size > 0 ? request->body.bytes + request->taken : "";
}

const char *http_request_line(struct http_request *request, size_t *size)
{
    buffer_drop(&request->body, request->taken);
    request->taken = 0;
    op_cancel(&request->op); /* what was said of the line before */
    if (!request->over)
        op_init(&request->op, request->transfers->loop, cancelled);
    if (!has_line(request))
        return NULL;
    const char *end = memchr(request->body.bytes, '\n', request->body.size);
    *size = (size_t)(end - request->body.bytes);
    request->taken = *size + 1;
    return request->body.bytes;
}

/* Takes the request off libcurl; what it has brought stays. */
static void detach(struct http_request *request)
{
    if (request->transfers == NULL)
        return;
    list_remove(&request->link);
    if (request->easy != NULL) {
        /* Harmless for one that was not added. */
        (void)curl.curl_multi_remove_handle(request->transfers->multi, request->easy);
        curl.curl_easy_cleanup(request->easy);
    }
    request->easy = NULL;
    request->transfers = NULL;
    request->over = true;
}

void http_request_close(struct http_request *request)
{
    if (request->transfers == NULL)
        return;
    detach(request);
    if (request->error.code == ERROR_NONE)
        (void)error_set(&request->error, ERROR_CLOSED, "closed");
    op_complete(&request->op);
}

void http_request_free(struct http_request *request)
{
    if (request == NULL)
        return;
    op_cancel(&request->op);
    detach(request);
    curl.curl_slist_free_all(request->headers_sent);
    buffer_free(&request->headers);
    buffer_free(&request->body);
    free(request->body_sent);
    free(request);
}

void http_requests_close(struct loop *loop)
{
    struct transfers **at = &all;
    while (*at != NULL && (*at)->loop != loop)
        at = &(*at)->next;
    struct transfers *transfers = *at;
    if (transfers == NULL)
        return;
    *at = transfers->next;
    struct list_node *next;
    for (struct list_node *node = list_first(&transfers->requests); node != NULL; node = next) {
        next = list_next(&transfers->requests, node);
        detach(container_of(node, struct http_request, link));
    }
    (void)curl.curl_multi_cleanup(transfers->multi); /* sockets are given back by socket_wanted */
    loop_at_cancel(loop, &transfers->timer);
    free(transfers);
}

#include "http/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/plain_file.h"
#include "base/redact.h"
#include "http/curl.h"
#include "http/hosts.h"
#include "http/security.h"
#include "http/sockets.h"
#include "http/transfers.h"
#include "net/channel.h"
#include "net/tls.h"

#define CONNECT_TIMEOUT_MS 5000L
#define HEADERS_MAX (64u << 10)

struct http_request {
    struct op op;
    struct transfer transfer;
    struct loop *loop;
    struct http_lookup *lookup;
    struct loop_deadline patience; /* while names are looked up */
    int64_t until_ns;              /* TIME_NEVER: a stream */
    int64_t silence_ns;
    struct curl_slist *headers_sent;
    char *body_sent;
    struct buffer headers, body;
    size_t most, taken;
    size_t searched; /* of the body: no line ends between `taken` and there */
    bool stream, over;
    bool header_whole; /* the empty line after it has come */
    bool is_new;       /* its connection was opened for it */
    bool unasked;      /* not sent: something had come already on its connection */
    int here, there;   /* the connection's ports */
    struct crown_error error;
    char tls_trouble[CURL_ERROR_SIZE]; /* libcurl writes there */
};

/* Each byte is looked at once, however small the pieces are that it comes in.
 * @return the end of the next line; NULL: it has not come. */
static const char *line_end(struct http_request *request)
{
    const struct buffer *body = &request->body;
    size_t size = body->size - request->searched;
    const char *end = size > 0 ? memchr(body->bytes + request->searched, '\n', size) : NULL;
    request->searched = end != NULL ? (size_t)(end - body->bytes) : body->size;
    return end;
}

/* Lines that were taken go when they are the larger part: what is left is not moved for each. */
static void drop_taken(struct http_request *request)
{
    if (request->taken <= request->body.size / 2)
        return;
    buffer_drop(&request->body, request->taken);
    request->searched -= request->taken;
    request->taken = 0;
}

static void finish(struct http_request *request, const struct crown_error *err)
{
    request->over = true;
    loop_at_cancel(request->loop, &request->patience);
    if (err->code != ERROR_NONE && request->error.code == ERROR_NONE)
        request->error = *err;
    op_complete(&request->op);
}

/* What came was something else, or the end of the connection. */
static bool is_no_tls(const char *trouble)
{
    return strstr(trouble, "wrong version number") != NULL || strstr(trouble, "SYSCALL") != NULL ||
           strstr(trouble, "unexpected eof") != NULL || strstr(trouble, "reset by peer") != NULL;
}

/* What is wrong with TLS libcurl says in its own words alone: its code does not tell a certificate
 * that has expired from one of a stranger. */
static const char *words_of(const struct http_request *request, CURLcode result)
{
    bool is_tls = result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CONNECT_ERROR ||
                  strstr(request->tls_trouble, " alert ") != NULL; /* also after the handshake */
    if (result == CURLE_SSL_CONNECT_ERROR && is_no_tls(request->tls_trouble))
        return "the other side does not go on with TLS: " TLS_IS_IT_ON;
    return is_tls && request->tls_trouble[0] != '\0' ? request->tls_trouble
                                                     : curl.curl_easy_strerror(result);
}

static int begin(struct http_request *request);

/* Nothing was sent: it goes out on a new connection. libcurl has closed the other one. */
static bool sent_anew(struct http_request *request)
{
    if (!request->unasked)
        return false;
    request->unasked = false;
    transfer_stop(&request->transfer);
    return curl.curl_easy_setopt(request->transfer.easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
           begin(request) == 0;
}

static void finished(struct transfer *transfer, CURLcode result)
{
    struct http_request *request = container_of(transfer, struct http_request, transfer);
    if (sent_anew(request))
        return;
    if (result == CURLE_OK)
        http_sockets_owe(transfers_sockets(transfer->transfers), request->here, request->there,
                         false);
    const struct crown_error *unfound = http_lookup_error(request->lookup);
    struct crown_error err = {0};
    const char *url = NULL;
    if (result == CURLE_COULDNT_CONNECT || result == CURLE_OPERATION_TIMEDOUT)
        http_lookup_blame(request->lookup);
    (void)curl.curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url); /* NULL: none */
    if (result == CURLE_COULDNT_CONNECT && unfound->code != ERROR_NONE)
        err = *unfound;
    else if (result != CURLE_OK)
        (void)error_set(&err, result == CURLE_OPERATION_TIMEDOUT ? ERROR_TIMEOUT : ERROR_CLOSED,
                        "%s: %s", url != NULL ? url : "http", words_of(request, result));
    else if (!request->header_whole) /* libcurl takes the end of the connection for it */
        (void)error_set(&err, ERROR_CLOSED, "%s: the answer broke off within its header",
                        url != NULL ? url : "http");
    redact(err.message);
    finish(request, &err);
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
    if (one * size > 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        buffer_drop(&request->headers, request->headers.size); /* of a 100 Continue, or a proxy */
        request->header_whole = false;
    }
    request->header_whole = request->header_whole || bytes[0] == '\r' || bytes[0] == '\n';
    return take(request, &request->headers, bytes, one * size, HEADERS_MAX);
}

static size_t body_came(char *bytes, size_t one, size_t size, void *context)
{
    struct http_request *request = context;
    size_t taken = take(request, &request->body, bytes, one * size, request->most);
    if (request->stream && line_end(request) != NULL)
        op_complete(&request->op);
    return taken;
}

static void cancelled(struct op *op)
{
    (void)op; /* a stream is asked again; a request is freed by its owner */
}

/* Takes the request off libcurl; what it has brought stays. */
static void detach(struct http_request *request)
{
    transfer_leave(&request->transfer);
    http_lookup_free(request->lookup);
    request->lookup = NULL;
    loop_at_cancel(request->loop, &request->patience);
    request->over = true;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct http_request *request = context;
    (void)purpose;
    curl_socket_t fd = http_socket_open(transfers_sockets(request->transfer.transfers), to);
    if (fd != CURL_SOCKET_BAD)
        channel_watch_silence(fd, request->silence_ns);
    request->is_new = true;
    return fd;
}

/* The connection is there, and nothing of the request has gone out. */
static int about_to_ask(void *context, char *to, char *from, int to_port, int from_port)
{
    struct http_request *request = context;
    (void)to;
    (void)from;
    request->here = from_port;
    request->there = to_port;
    http_sockets_owe(transfers_sockets(request->transfer.transfers), from_port, to_port, true);
    request->unasked =
        !request->is_new && http_sockets_unasked(transfers_sockets(request->transfer.transfers),
                                                 request->transfer.easy, from_port, to_port);
    return request->unasked ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

#define SET(option, value)                                                                         \
    (result = result == CURLE_OK ? curl.curl_easy_setopt(easy, option, value) : result)

static CURLcode set_up(struct http_request *request, const struct http_options *options)
{
    CURL *easy = request->transfer.easy;
    CURLcode result = http_secure(easy, options);
    SET(CURLOPT_URL, options->url);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, request->tls_trouble);
    /* Over HTTP/2 a request that nobody answers ends its stream alone: the connection would be used
     * for all others, and for ever, where a proxy hangs and goes on acknowledging. */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* So that questions find the connections that they had. */
    SET(CURLOPT_FRESH_CONNECT, options->stream ? 1L : 0L);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_OPENSOCKETDATA, request);
    SET(CURLOPT_CLOSESOCKETFUNCTION, http_socket_close);
    SET(CURLOPT_CLOSESOCKETDATA, transfers_sockets(request->transfer.transfers));
    SET(CURLOPT_PREREQFUNCTION, about_to_ask);
    SET(CURLOPT_PREREQDATA, request);
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
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

/* The names are there: libcurl has nothing to look up. */
static int begin(struct http_request *request)
{
    CURL *easy = request->transfer.easy;
    CURLcode result = CURLE_OK;
    struct curl_slist *entries = http_lookup_entries(request->lookup);
    if (entries != NULL)
        SET(CURLOPT_RESOLVE, entries);
    int64_t left_ns = request->until_ns - loop_now(request->loop);
    if (request->until_ns != TIME_NEVER)
        SET(CURLOPT_TIMEOUT_MS, left_ns > 0 ? (long)(left_ns / NS_PER_MS) + 1 : 1L);
    return result == CURLE_OK ? transfer_start(&request->transfer) : -1;
}

static void looked_up(void *context, const struct crown_error *err)
{
    struct http_request *request = context;
    struct crown_error problem = *err;
    loop_at_cancel(request->loop, &request->patience);
    if (problem.code == ERROR_NONE && begin(request) < 0)
        (void)error_set(&problem, ERROR_MEMORY, "http: out of memory");
    if (problem.code != ERROR_NONE)
        finish(request, &problem);
}

static void impatient(struct loop_deadline *patience)
{
    struct http_request *request = container_of(patience, struct http_request, patience);
    struct crown_error err = *http_lookup_error(request->lookup);
    if (err.code == ERROR_NONE)
        (void)error_set(&err, ERROR_TIMEOUT, "http: no name server has answered in time");
    http_lookup_free(request->lookup);
    request->lookup = NULL;
    finish(request, &err);
}

/* The set of transfers ends: the request goes on as one that is over. */
static void closing(struct transfer *transfer)
{
    detach(container_of(transfer, struct http_request, transfer));
}

/* RFC 9110: a token; anything else could end the line that it stands in. */
static bool is_method(const char *method)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return method == NULL || (method[0] != '\0' && method[strspn(method, token)] == '\0');
}

static int start(struct http_request *request, const struct http_options *options,
                 struct crown_error *err)
{
    struct transfers *transfers = transfers_of(request->loop, err);
    if (transfers == NULL)
        return -1;
    if (plain_file_check("http: the file of authorities", options->ca, err) < 0 ||
        plain_file_check("http: the certificate", options->cert, err) < 0 ||
        plain_file_check("http: the key", options->key, err) < 0)
        return -1;
    if (!is_method(options->method))
        return error_set(err, ERROR_USAGE, "http: the method is none");
    if (transfer_join(transfers, &request->transfer) < 0 || !copy_words(request, options))
        return error_set(err, ERROR_MEMORY, "http: out of memory");
    CURLcode result = set_up(request, options);
    if (result != CURLE_OK)
        return error_set(err, ERROR_USAGE, "http: %s", curl.curl_easy_strerror(result));
    request->lookup =
        http_lookup_start(transfers_hosts(transfers), options->url, looked_up, request, err);
    if (request->lookup == NULL)
        return -1;
    int64_t now = loop_now(request->loop);
    request->until_ns = clock_add_ns(now, options->timeout_ns);
    loop_at(request->loop, &request->patience,
            options->timeout_ns != TIME_NEVER ? request->until_ns
                                              : clock_add_ns(now, CONNECT_TIMEOUT_MS * NS_PER_MS));
    return 0;
}

struct http_request *http_request_start(struct loop *loop, const struct http_options *options,
                                        struct crown_error *err)
{
    struct http_request *request = calloc(1, sizeof(*request));
    if (request == NULL) {
        (void)error_set(err, ERROR_MEMORY, "http: out of memory");
        return NULL;
    }
    request->loop = loop;
    request->transfer.finished = finished;
    request->transfer.closing = closing;
    request->patience.fire = impatient;
    request->most = options->most;
    request->stream = options->stream;
    request->silence_ns = options->silence_ns;
    op_init(&request->op, loop, cancelled);
    if (start(request, options, err) == 0)
        return request;
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
    if (request->transfer.easy == NULL)
        return 0;
    (void)curl.curl_easy_getinfo(request->transfer.easy, CURLINFO_RESPONSE_CODE,
                                 &status); /* 0: not known */
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
    drop_taken(request);
    op_cancel(&request->op); /* what was said of the line before */
    if (!request->over)
        op_init(&request->op, request->loop, cancelled);
    const char *line = request->body.bytes + request->taken;
    const char *end = line_end(request);
    if (end == NULL)
        return NULL;
    *size = (size_t)(end - line);
    request->taken += *size + 1;
    request->searched = request->taken;
    return line;
}

void http_request_close(struct http_request *request)
{
    if (request->transfer.transfers == NULL)
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
    transfers_close(loop);
}

#include "net/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "net/resolve.h"

#define ADDRESSES_MAX 16
#define CHUNK 16384u
#define USER_TIMEOUT_MS 20000 /* unacknowledged data: the other side is gone (tcp(7)) */

enum state { STREAM_RESOLVING, STREAM_CONNECTING, STREAM_HANDSHAKING, STREAM_OPEN, STREAM_CLOSED };

struct stream {
    struct loop *loop;
    enum state state;
    int fd;
    struct loop_watch watch;
    struct resolution *resolution;
    struct address addresses[ADDRESSES_MAX];
    size_t address_count, address_next;
    const struct tls_context *tls;
    SSL *ssl;
    bool ssl_wants_write; /* a read that must write first */
    bool short_io;        /* torture: one byte at a time */
    bool ended;           /* nothing more comes */
    struct crown_error error;
    char host[256];
    char peer[160];
    struct op open_op, read_op, write_op;
    bool reading, writing;
    enum stream_read kind;
    size_t wanted;
    struct buffer in, out;
    size_t taken; /* at the front of `in`, to be dropped at the next call */
};

static void update(struct stream *stream);

static void set_failed(struct stream *stream)
{
    int fd = stream->fd;
    if (stream->state == STREAM_CLOSED)
        return;
    stream->state = STREAM_CLOSED;
    loop_unwatch(&stream->watch);
    resolution_cancel(stream->resolution);
    stream->resolution = NULL;
    SSL_free(stream->ssl);
    stream->ssl = NULL;
    stream->fd = -1;
    if (fd >= 0)
        (void)close(fd); /* what could not be sent is lost, and said so in `error` */
    op_complete(&stream->open_op);
    op_complete(&stream->read_op);
    op_complete(&stream->write_op);
}

static void fail_errno(struct stream *stream, const char *what, int saved)
{
    (void)error_set_errno(&stream->error, saved, "%s %s", what, stream->peer);
    if (saved == ECONNREFUSED)
        stream->error.code = ERROR_REFUSED;
    if (saved == EPIPE || saved == ECONNRESET)
        stream->error.code = ERROR_CLOSED;
    set_failed(stream);
}

/* --- moving bytes
 * ---------------------------------------------------------------------------------------------- */

/* @return bytes moved, 0 at the end of file, -1 not now, -2 broken (`error` says why). */
static ssize_t ssl_result(struct stream *stream, int result)
{
    int saved = errno;
    int why = SSL_get_error(stream->ssl, result);
    stream->ssl_wants_write = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return -1;
    if (why == SSL_ERROR_ZERO_RETURN || (why == SSL_ERROR_SYSCALL && saved == 0))
        return 0;
    if (why == SSL_ERROR_SYSCALL)
        (void)error_set_errno(&stream->error, saved, "TLS with %s", stream->peer);
    else
        (void)tls_error(stream->ssl, stream->peer, &stream->error);
    return -2;
}

static ssize_t receive(struct stream *stream, char *bytes, size_t size)
{
    if (stream->short_io)
        size = 1;
    if (stream->ssl != NULL) {
        ERR_clear_error();
        int got = SSL_read(stream->ssl, bytes, (int)size);
        return got > 0 ? got : ssl_result(stream, got);
    }
    ssize_t got = recv(stream->fd, bytes, size, 0);
    if (got >= 0)
        return got;
    if (errno == EAGAIN || errno == EINTR)
        return -1;
    (void)error_set_errno(&stream->error, errno, "read from %s", stream->peer);
    return -2;
}

static ssize_t transmit(struct stream *stream, const char *bytes, size_t size)
{
    if (stream->short_io)
        size = 1;
    if (stream->ssl != NULL) {
        ERR_clear_error();
        int sent = SSL_write(stream->ssl, bytes, (int)size);
        if (sent > 0)
            return sent;
        ssize_t result = ssl_result(stream, sent);
        return result == 0 ? -2 : result;
    }
    ssize_t sent = send(stream->fd, bytes, size, MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EINTR)
        return -1;
    (void)error_set_errno(&stream->error, errno, "write to %s", stream->peer);
    return -2;
}

static bool read_satisfied(const struct stream *stream)
{
    size_t have = stream->in.size - stream->taken;
    const char *bytes = stream->in.bytes + stream->taken;
    if (stream->ended)
        return true;
    switch (stream->kind) {
    case STREAM_LINE:
        return have > STREAM_READ_MAX || (have > 0 && memchr(bytes, '\n', have) != NULL);
    case STREAM_EXACT:
        return have >= stream->wanted;
    case STREAM_SOME:
        return have > 0;
    default:
        return have > STREAM_READ_MAX;
    }
}

static void read_more(struct stream *stream)
{
    char chunk[CHUNK];
    while (stream->reading && stream->state == STREAM_OPEN && !read_satisfied(stream)) {
        ssize_t got = receive(stream, chunk, sizeof(chunk));
        if (got == -1)
            return;
        if (got == 0 || got == -2 || buffer_append(&stream->in, chunk, (size_t)got) < 0) {
            stream->ended = true; /* what is buffered can still be read; then `error`, if any */
            break;
        }
    }
    if (stream->reading && read_satisfied(stream))
        op_complete(&stream->read_op);
}

static void write_more(struct stream *stream)
{
    while (stream->out.size > 0 && stream->state == STREAM_OPEN) {
        ssize_t sent = transmit(stream, stream->out.bytes, stream->out.size);
        if (sent == -1)
            return;
        if (sent == -2) {
            if (stream->error.code == ERROR_SYSTEM)
                stream->error.code = ERROR_CLOSED;
            stream->ended = true;
            buffer_drop(&stream->out, stream->out.size);
            break;
        }
        buffer_drop(&stream->out, (size_t)sent);
    }
    if (stream->writing && stream->out.size == 0)
        op_complete(&stream->write_op);
}

/* --- opening
 * ---------------------------------------------------------------------------------------------------
 */

static void opened(struct stream *stream)
{
    stream->state = STREAM_OPEN;
    op_complete(&stream->open_op);
}

static void handshake(struct stream *stream)
{
    ERR_clear_error();
    int result = SSL_do_handshake(stream->ssl);
    if (result == 1) {
        opened(stream);
        return;
    }
    ssize_t outcome = ssl_result(stream, result);
    if (outcome == -1)
        return;
    if (outcome == 0)
        (void)error_set(&stream->error, ERROR_TLS, "TLS with %s: the other side broke off",
                        stream->peer);
    stream->error.code = ERROR_TLS;
    set_failed(stream);
}

static void begin_tls(struct stream *stream)
{
    stream->ssl = tls_start(stream->tls, stream->fd, stream->host, &stream->error);
    if (stream->ssl == NULL) {
        set_failed(stream);
        return;
    }
    stream->state = STREAM_HANDSHAKING;
    handshake(stream);
}

static void connected(struct stream *stream)
{
    int on = 1, timeout = USER_TIMEOUT_MS;
    /* UNIX sockets refuse these, and need none of them. */
    (void)setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(stream->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(stream->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
    if (stream->tls != NULL)
        begin_tls(stream);
    else
        opened(stream);
}

static void name_peer(struct stream *stream, const struct address *address)
{
    char host[64], port[16];
    if (address->storage.ss_family == AF_UNIX)
        return; /* named by its path already */
    if (getnameinfo((const struct sockaddr *)&address->storage, address->size, host, sizeof(host),
                    port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        (void)snprintf(stream->peer, sizeof(stream->peer),
                       strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

static void try_next(struct stream *stream);

static void connect_failed(struct stream *stream, int saved)
{
    int fd = stream->fd;
    loop_unwatch(&stream->watch);
    stream->fd = -1;
    if (fd >= 0)
        (void)close(fd); /* never used */
    if (stream->address_next < stream->address_count)
        try_next(stream);
    else
        fail_errno(stream, "connect to", saved);
}

/* Starts with the next address; one that fails gives way to the one after it. */
static void try_next(struct stream *stream)
{
    const struct address *address = &stream->addresses[stream->address_next++];
    name_peer(stream, address);
    stream->state = STREAM_CONNECTING;
    stream->fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (stream->fd < 0) {
        connect_failed(stream, errno);
        return;
    }
    if (connect(stream->fd, (const struct sockaddr *)&address->storage, address->size) == 0)
        connected(stream);
    else if (errno != EINPROGRESS)
        connect_failed(stream, errno);
    update(stream);
}

static void connect_ready(struct stream *stream)
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error != 0)
        connect_failed(stream, error);
    else
        connected(stream);
}

static void name_resolved(void *context, const struct address *addresses, size_t count,
                          const struct crown_error *err)
{
    struct stream *stream = context;
    stream->resolution = NULL;
    if (count == 0) {
        stream->error = *err;
        set_failed(stream);
        return;
    }
    stream->address_count = count < ADDRESSES_MAX ? count : ADDRESSES_MAX;
    memcpy(stream->addresses, addresses, stream->address_count * sizeof(*addresses));
    try_next(stream);
}

/* --- the loop
 * --------------------------------------------------------------------------------------------------
 */

static void stream_ready(struct loop_watch *watch, unsigned events)
{
    struct stream *stream = (struct stream *)((char *)watch - offsetof(struct stream, watch));
    (void)events;
    if (stream->state == STREAM_CONNECTING)
        connect_ready(stream);
    else if (stream->state == STREAM_HANDSHAKING)
        handshake(stream);
    if (stream->state == STREAM_OPEN) {
        read_more(stream);
        write_more(stream);
    }
    update(stream);
}

/* Watches for what the stream can use now: a reader that nobody is keeps the bytes in the kernel.
 */
static void update(struct stream *stream)
{
    unsigned events = 0;
    switch (stream->state) {
    case STREAM_CONNECTING:
        events = LOOP_WRITE;
        break;
    case STREAM_HANDSHAKING:
        events = stream->ssl_wants_write ? LOOP_WRITE : LOOP_READ;
        break;
    case STREAM_OPEN:
        if (stream->reading && !stream->ended)
            events |= stream->ssl_wants_write ? LOOP_WRITE : LOOP_READ;
        if (stream->out.size > 0)
            events |= LOOP_WRITE | (stream->ssl != NULL ? LOOP_READ : 0);
        break;
    default:
        return;
    }
    if (events != stream->watch.events || stream->watch.fd != stream->fd)
        loop_watch(stream->loop, &stream->watch, stream->fd, events);
}

static void read_cancelled(struct op *op)
{
    struct stream *stream = (struct stream *)((char *)op - offsetof(struct stream, read_op));
    stream->reading = false; /* the bytes stay */
    update(stream);
}

static void write_cancelled(struct op *op)
{
    struct stream *stream = (struct stream *)((char *)op - offsetof(struct stream, write_op));
    stream->writing = false; /* what is queued is still sent: half a message would spoil the line */
}

/* Nobody waits for it any more: nobody is going to use it. */
static void open_cancelled(struct op *op)
{
    struct stream *stream = (struct stream *)((char *)op - offsetof(struct stream, open_op));
    set_failed(stream);
}

static struct stream *stream_new(struct loop *loop, const char *host, struct crown_error *err)
{
    const char *torture = getenv("CROWN_TORTURE");
    struct stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        (void)error_set(err, ERROR_MEMORY, "connect to %s: out of memory", host);
        return NULL;
    }
    stream->loop = loop;
    stream->fd = -1;
    stream->short_io = torture != NULL && strcmp(torture, "short") == 0;
    stream->watch.ready = stream_ready;
    (void)snprintf(stream->host, sizeof(stream->host), "%s", host);
    op_init(&stream->open_op, loop, open_cancelled);
    return stream;
}

static void connect_unix(struct stream *stream, const char *path)
{
    struct sockaddr_un *name = (struct sockaddr_un *)(void *)&stream->addresses[0].storage;
    (void)snprintf(stream->peer, sizeof(stream->peer), "unix:%s", path);
    if (strlen(path) >= sizeof(name->sun_path)) {
        (void)error_set(&stream->error, ERROR_USAGE, "connect to %s: the path is too long",
                        stream->peer);
        set_failed(stream);
        return;
    }
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path, path, strlen(path) + 1);
    stream->addresses[0].size = sizeof(*name);
    stream->address_count = 1;
    try_next(stream);
}

struct stream *stream_connect(struct loop *loop, const char *host, const char *port,
                              const struct tls_context *tls, struct crown_error *err)
{
    struct stream *stream = stream_new(loop, host, err);
    if (stream == NULL)
        return NULL;
    stream->tls = tls;
    if (strncmp(host, "unix:", 5) == 0) {
        connect_unix(stream, host + 5);
        return stream;
    }
    (void)snprintf(stream->peer, sizeof(stream->peer), "%.120s:%s", host, port);
    struct resolver *resolver = resolver_get(loop, err);
    if (resolver != NULL)
        stream->resolution = resolve(resolver, host, port, name_resolved, stream, err);
    if (stream->resolution == NULL) {
        stream_free(stream);
        return NULL;
    }
    return stream;
}

struct stream *stream_adopt(struct loop *loop, int fd, const struct tls_context *tls,
                            struct crown_error *err)
{
    struct address address = {.size = sizeof(address.storage)};
    struct stream *stream = stream_new(loop, "", err);
    if (stream == NULL) {
        (void)close(fd); /* never used */
        return NULL;
    }
    stream->fd = fd;
    stream->tls = tls;
    (void)snprintf(stream->peer, sizeof(stream->peer), "unix:");
    if (getpeername(fd, (struct sockaddr *)&address.storage, &address.size) == 0)
        name_peer(stream, &address);
    connected(stream);
    update(stream);
    return stream;
}

int stream_start_tls(struct stream *stream, const struct tls_context *tls, struct crown_error *err)
{
    if (stream->state != STREAM_OPEN || stream->ssl != NULL || stream->out.size > 0)
        return error_set(err, ERROR_USAGE, "start TLS with %s: not now", stream->peer);
    stream->tls = tls;
    op_init(&stream->open_op, stream->loop, open_cancelled);
    begin_tls(stream);
    update(stream);
    return 0;
}

struct op *stream_open_op(struct stream *stream)
{
    return &stream->open_op;
}

const struct crown_error *stream_error(const struct stream *stream)
{
    return &stream->error;
}

bool stream_is_open(const struct stream *stream)
{
    return stream->state == STREAM_OPEN;
}

static int refuse_closed(const struct stream *stream, struct crown_error *err)
{
    if (stream->error.code != ERROR_NONE)
        *err = stream->error;
    else
        (void)error_set(err, ERROR_CLOSED, "closed");
    return -1;
}

int stream_read(struct stream *stream, enum stream_read kind, size_t size, struct crown_error *err)
{
    if (stream->reading)
        return error_set(err, ERROR_USAGE, "another task is reading from %s", stream->peer);
    buffer_drop(&stream->in, stream->taken);
    stream->taken = 0;
    op_init(&stream->read_op, stream->loop, read_cancelled);
    stream->reading = true;
    stream->kind = kind;
    stream->wanted = size;
    if (stream->state == STREAM_CLOSED)
        stream->ended = true;
    read_more(stream);
    if (stream->ended)
        op_complete(&stream->read_op);
    update(stream);
    return 0;
}

struct op *stream_read_op(struct stream *stream)
{
    return &stream->read_op;
}

ptrdiff_t stream_take(struct stream *stream, const char **bytes, struct crown_error *err)
{
    size_t have = stream->in.size;
    size_t size = have;
    stream->reading = false;
    update(stream);
    *bytes = stream->in.bytes;
    if (stream->kind == STREAM_LINE && have > 0) {
        const char *end = memchr(stream->in.bytes, '\n', have);
        if (end == NULL && have > STREAM_READ_MAX)
            return error_set(err, ERROR_PROTOCOL, "a line of more than %u bytes from %s",
                             STREAM_READ_MAX, stream->peer);
        size = end != NULL ? (size_t)(end - stream->in.bytes) + 1 : have;
    } else if (stream->kind == STREAM_EXACT && have > stream->wanted) {
        size = stream->wanted;
    } else if (stream->kind == STREAM_ALL && have > STREAM_READ_MAX) {
        return error_set(err, ERROR_PROTOCOL, "more than %u bytes from %s", STREAM_READ_MAX,
                         stream->peer);
    }
    if (size == 0 && !(stream->kind == STREAM_EXACT && stream->wanted == 0))
        return refuse_closed(stream, err);
    stream->taken = size;
    return (ptrdiff_t)size;
}

int stream_write(struct stream *stream, const char *bytes, size_t size, struct crown_error *err)
{
    if (stream->writing)
        return error_set(err, ERROR_USAGE, "another task is writing to %s", stream->peer);
    if (stream->state != STREAM_OPEN || (stream->ended && stream->error.code != ERROR_NONE))
        return refuse_closed(stream, err);
    if (buffer_append(&stream->out, bytes, size) < 0)
        return error_set(err, ERROR_MEMORY, "write to %s: out of memory", stream->peer);
    op_init(&stream->write_op, stream->loop, write_cancelled);
    stream->writing = true;
    write_more(stream);
    update(stream);
    return 0;
}

struct op *stream_write_op(struct stream *stream)
{
    return &stream->write_op;
}

void stream_write_ended(struct stream *stream)
{
    stream->writing = false;
}

void stream_shutdown(struct stream *stream)
{
    if (stream->state != STREAM_OPEN)
        return;
    if (stream->ssl != NULL)
        (void)SSL_shutdown(stream->ssl); /* one way is enough */
    (void)shutdown(stream->fd, SHUT_WR); /* gone already: the better */
}

int stream_socket(const struct stream *stream)
{
    return stream->fd;
}

const char *stream_peer(const struct stream *stream)
{
    return stream->peer;
}

void stream_close(struct stream *stream)
{
    if (stream->state == STREAM_OPEN && stream->ssl != NULL)
        (void)SSL_shutdown(stream->ssl); /* as far as it goes without waiting */
    if (stream->state != STREAM_CLOSED && stream->error.code == ERROR_NONE)
        (void)error_set(&stream->error, ERROR_CLOSED, "closed");
    set_failed(stream);
}

void stream_free(struct stream *stream)
{
    if (stream == NULL)
        return;
    stream_close(stream);
    op_cancel(&stream->open_op);
    op_cancel(&stream->read_op);
    op_cancel(&stream->write_op);
    buffer_free(&stream->in);
    buffer_free(&stream->out);
    free(stream);
}

#include "net/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/container.h"
#include "net/channel.h"
#include "net/dial.h"
#include "net/intake.h"

#define CHUNK 16384u

enum state { STREAM_DIALLING, STREAM_HANDSHAKING, STREAM_OPEN, STREAM_CLOSED };

struct stream {
    struct loop *loop;
    enum state state;
    enum state reached; /* when its opening was given up */
    struct dial *dial;  /* while dialling */
    struct channel channel;
    struct loop_watch watch;
    const struct tls_context *tls;
    bool ended; /* nothing more comes */
    struct crown_error error;
    char host[256];
    struct op open_op, read_op, write_op;
    bool reading, writing;
    struct intake in;
    struct buffer out;
};

static void update(struct stream *stream);

static void set_failed(struct stream *stream)
{
    if (stream->state == STREAM_CLOSED)
        return;
    stream->state = STREAM_CLOSED;
    loop_unwatch(&stream->watch);
    dial_cancel(stream->dial);
    stream->dial = NULL;
    channel_close(&stream->channel);
    op_complete(&stream->open_op);
    op_complete(&stream->read_op);
    op_complete(&stream->write_op);
}

/* --- moving bytes */

static bool read_satisfied(const struct stream *stream)
{
    return stream->ended || intake_is_enough(&stream->in);
}

static void read_more(struct stream *stream)
{
    char chunk[CHUNK];
    while (stream->reading && stream->state == STREAM_OPEN && !read_satisfied(stream)) {
        ssize_t got = channel_receive(&stream->channel, chunk, sizeof(chunk), &stream->error);
        if (got == CHANNEL_LATER)
            return;
        if (got <= 0 || intake_add(&stream->in, chunk, (size_t)got) < 0) {
            stream->ended = true; /* what is buffered can still be read; then `error`, if any */
            break;
        }
    }
    if (stream->reading && read_satisfied(stream))
        op_complete(&stream->read_op);
}

/* A peer that resets the connection has mostly said why: a TLS alert, a store's error. That is in
 * the kernel still, and says more than the failed write does. */
static void take_last_words(struct stream *stream)
{
    struct crown_error error = {.code = ERROR_NONE};
    char chunk[CHUNK];
    ssize_t got;
    do
        got = channel_receive(&stream->channel, chunk, sizeof(chunk), &error);
    while (got > 0 && intake_add(&stream->in, chunk, (size_t)got) == 0);
    if (error.code == ERROR_TLS)
        stream->error = error;
}

static void write_more(struct stream *stream)
{
    while (stream->out.size > 0 && stream->state == STREAM_OPEN) {
        ssize_t sent =
            channel_send(&stream->channel, stream->out.bytes, stream->out.size, &stream->error);
        if (sent == CHANNEL_LATER)
            return;
        if (sent == CHANNEL_BROKEN) {
            take_last_words(stream);
            stream->ended = true;
            buffer_drop(&stream->out, stream->out.size);
            if (stream->reading)
                op_complete(&stream->read_op); /* nothing is watched any more */
            break;
        }
        buffer_drop(&stream->out, (size_t)sent);
    }
    if (stream->writing && stream->out.size == 0)
        op_complete(&stream->write_op);
}

/* --- opening */

static void opened(struct stream *stream)
{
    stream->state = STREAM_OPEN;
    op_complete(&stream->open_op);
}

static void handshake(struct stream *stream)
{
    int result = channel_handshake(&stream->channel, &stream->error);
    if (result == 1)
        opened(stream);
    else if (result == CHANNEL_BROKEN)
        set_failed(stream);
}

static void begin_tls(struct stream *stream)
{
    if (channel_start_tls(&stream->channel, stream->tls, stream->host, &stream->error) < 0) {
        set_failed(stream);
        return;
    }
    stream->state = STREAM_HANDSHAKING;
    handshake(stream);
}

static void connected(struct stream *stream, int fd, const struct address *peer)
{
    channel_open(&stream->channel, fd, peer);
    if (stream->tls != NULL)
        begin_tls(stream);
    else
        opened(stream);
    update(stream);
}

static void dial_done(void *context, int fd, const struct address *address,
                      const struct crown_error *err)
{
    struct stream *stream = context;
    stream->dial = NULL;
    if (fd >= 0) {
        connected(stream, fd, address);
        return;
    }
    stream->error = *err;
    set_failed(stream);
}

/* --- the loop */

static void stream_ready(struct loop_watch *watch, unsigned events)
{
    struct stream *stream = container_of(watch, struct stream, watch);
    (void)events;
    if (stream->state == STREAM_HANDSHAKING)
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
    case STREAM_HANDSHAKING:
        events = stream->channel.wants_write ? LOOP_WRITE : LOOP_READ;
        break;
    case STREAM_OPEN:
        if (stream->reading && !stream->ended)
            events |= stream->channel.wants_write ? LOOP_WRITE : LOOP_READ;
        if (stream->out.size > 0)
            events |= LOOP_WRITE | (stream->channel.ssl != NULL ? LOOP_READ : 0);
        break;
    default:
        return;
    }
    if (events != stream->watch.events || stream->watch.fd != stream->channel.fd)
        loop_watch(stream->loop, &stream->watch, stream->channel.fd, events);
}

static void read_cancelled(struct op *op)
{
    struct stream *stream = container_of(op, struct stream, read_op);
    stream->reading = false; /* the bytes stay */
    update(stream);
}

static void write_cancelled(struct op *op)
{
    struct stream *stream = container_of(op, struct stream, write_op);
    stream->writing = false; /* what is queued is still sent: half a message would spoil the line */
}

/* Nobody waits for it any more: nobody is going to use it. */
static void open_cancelled(struct op *op)
{
    struct stream *stream = container_of(op, struct stream, open_op);
    stream->reached = stream->state;
    if (stream->state == STREAM_HANDSHAKING)
        channel_forget(stream->channel.fd);
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
    stream->reached = STREAM_CLOSED;
    stream->channel.fd = -1;
    stream->channel.short_io = torture != NULL && strcmp(torture, "short") == 0;
    stream->watch.ready = stream_ready;
    (void)snprintf(stream->host, sizeof(stream->host), "%s", host);
    op_init(&stream->open_op, loop, open_cancelled);
    return stream;
}

struct stream *stream_connect(struct loop *loop, const char *host, const char *port,
                              const struct tls_context *tls, struct crown_error *err)
{
    struct stream *stream = stream_new(loop, host, err);
    if (stream == NULL)
        return NULL;
    stream->tls = tls;
    (void)snprintf(stream->channel.peer, sizeof(stream->channel.peer), "%.120s:%s", host, port);
    stream->dial = dial_start(loop, host, port, dial_done, stream, err);
    if (stream->dial == NULL) {
        stream_free(stream);
        return NULL;
    }
    return stream;
}

struct stream *stream_adopt(struct loop *loop, int fd, const struct tls_context *tls,
                            struct crown_error *err)
{
    struct address peer = {.size = sizeof(peer.storage)};
    struct stream *stream = stream_new(loop, "", err);
    if (stream == NULL) {
        (void)close(fd); /* never used */
        return NULL;
    }
    if (getpeername(fd, address_fill(&peer), &peer.size) < 0)
        peer.size = 0; /* gone already: the first read says so */
    stream->tls = tls;
    connected(stream, fd, &peer);
    return stream;
}

int stream_start_tls(struct stream *stream, const struct tls_context *tls, struct crown_error *err)
{
    if (stream->state != STREAM_OPEN || stream->channel.ssl != NULL || stream->out.size > 0)
        return error_set(err, ERROR_USAGE, "start TLS with %s: not now", stream->channel.peer);
    if (intake_is_left(&stream->in)) { /* it would be read as if TLS had brought it */
        (void)error_set(&stream->error, ERROR_PROTOCOL,
                        "start TLS with %s: it has sent more in plain, which anybody may have put "
                        "there",
                        stream->channel.peer);
        *err = stream->error;
        intake_forget(&stream->in);
        set_failed(stream);
        return -1;
    }
    stream->tls = tls;
    op_init(&stream->open_op, stream->loop, open_cancelled);
    begin_tls(stream);
    update(stream);
    return 0;
}

void stream_watch_silence(struct stream *stream, int64_t silence_ns)
{
    if (stream->channel.fd >= 0)
        channel_watch_silence(stream->channel.fd, silence_ns);
}

struct op *stream_open_op(struct stream *stream)
{
    return &stream->open_op;
}

const struct crown_error *stream_error(const struct stream *stream)
{
    return &stream->error;
}

const char *stream_step(const struct stream *stream)
{
    static const char *const steps[] = {[STREAM_DIALLING] = "dialling",
                                        [STREAM_HANDSHAKING] = "handshaking",
                                        [STREAM_OPEN] = "open",
                                        [STREAM_CLOSED] = "closed"};
    if (stream->dial != NULL && dial_is_resolving(stream->dial))
        return "resolving";
    return steps[stream->state == STREAM_CLOSED ? stream->reached : stream->state];
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
        return error_set(err, ERROR_USAGE, "another task is reading from %s", stream->channel.peer);
    intake_want(&stream->in, kind, size);
    op_init(&stream->read_op, stream->loop, read_cancelled);
    stream->reading = true;
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

bool stream_has_come(struct stream *stream)
{
    char chunk[CHUNK];
    if (stream->state == STREAM_OPEN && !stream->ended && !intake_is_left(&stream->in)) {
        ssize_t got = channel_receive(&stream->channel, chunk, sizeof(chunk), &stream->error);
        if (got != CHANNEL_LATER && (got <= 0 || intake_add(&stream->in, chunk, (size_t)got) < 0))
            stream->ended = true;
        if (stream->reading && read_satisfied(stream))
            op_complete(&stream->read_op);
        update(stream);
    }
    return intake_is_left(&stream->in);
}

ptrdiff_t stream_take(struct stream *stream, const char **bytes, struct crown_error *err)
{
    stream->reading = false;
    update(stream);
    ptrdiff_t size = intake_take(&stream->in, bytes, stream->channel.peer, err);
    bool wanted_nothing = stream->in.kind == STREAM_EXACT && stream->in.wanted == 0;
    return size == 0 && !wanted_nothing ? refuse_closed(stream, err) : size;
}

int stream_write(struct stream *stream, const char *bytes, size_t size, struct crown_error *err)
{
    if (stream->writing)
        return error_set(err, ERROR_USAGE, "another task is writing to %s", stream->channel.peer);
    if (stream->state == STREAM_CLOSED || (stream->ended && stream->error.code != ERROR_NONE))
        return refuse_closed(stream, err);
    /* What is written while a handshake is under way goes out after it: a server may speak first.
     */
    if (buffer_append(&stream->out, bytes, size) < 0)
        return error_set(err, ERROR_MEMORY, "write to %s: out of memory", stream->channel.peer);
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
    channel_shutdown(&stream->channel);
}

int stream_socket(const struct stream *stream)
{
    return stream->channel.fd;
}

const char *stream_peer(const struct stream *stream)
{
    return stream->channel.peer;
}

void stream_close(struct stream *stream)
{
    if (stream->state == STREAM_OPEN)
        channel_farewell(&stream->channel);
    if (stream->state != STREAM_CLOSED && stream->error.code == ERROR_NONE)
        (void)error_set(&stream->error, ERROR_CLOSED, "closed");
    set_failed(stream);
}

void stream_reset(struct stream *stream)
{
    if (stream->channel.fd >= 0)
        channel_forget(stream->channel.fd);
    stream_close(stream);
}

void stream_free(struct stream *stream)
{
    if (stream == NULL)
        return;
    stream_close(stream);
    op_cancel(&stream->open_op);
    op_cancel(&stream->read_op);
    op_cancel(&stream->write_op);
    intake_free(&stream->in);
    buffer_free(&stream->out);
    free(stream);
}

/**
 * A connection: TCP or a UNIX socket, plain or TLS, with buffered reads. Everything that takes time
 * completes an op; what a read did not take stays in the buffer, also when the read was cancelled
 * or timed out.
 */
#ifndef CROWN_NET_STREAM_H
#define CROWN_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/op.h"
#include "net/intake.h"
#include "net/tls.h"

struct stream;

/**
 * Begins to connect; the op of stream_open_op completes when it is open, TLS included, or failed.
 * @param host a name, an address, or "unix:/path".
 * @param port a number as text; unused for UNIX sockets.
 * @param tls NULL: plain. Borrowed until the stream is closed.
 * @return NULL with `err`.
 */
struct stream *stream_connect(struct loop *loop, const char *host, const char *port,
                              const struct tls_context *tls, struct crown_error *err);

/** Takes over a connected socket, as accept(2) gives it. @return NULL with `err`, the socket
 * closed. */
struct stream *stream_adopt(struct loop *loop, int fd, const struct tls_context *tls,
                            struct crown_error *err);

/** Begins TLS on an open stream; completes stream_open_op. @return 0, or -1 with `err`:
 * ERROR_PROTOCOL, the stream closed, when more had come in plain than was read. */
int stream_start_tls(struct stream *stream, const struct tls_context *tls, struct crown_error *err);

/** How long a peer that acknowledges nothing goes unnoticed, from now on. */
void stream_watch_silence(struct stream *stream, int64_t silence_ns);

struct op *stream_open_op(struct stream *stream);
/** @return what went wrong, or an error with code ERROR_NONE. */
const struct crown_error *stream_error(const struct stream *stream);
bool stream_is_open(const struct stream *stream);
/** @return how far it is: "resolving", "dialling", "handshaking", "open" or "closed"; where its
 * opening was given up, how far that had come. */
const char *stream_step(const struct stream *stream);

/**
 * Begins a read; the op of stream_read_op completes when it can be taken. One at a time.
 * @param size for STREAM_EXACT: how many bytes.
 * @return 0; -1 with ERROR_USAGE while another read waits.
 */
int stream_read(struct stream *stream, enum stream_read kind, size_t size, struct crown_error *err);
struct op *stream_read_op(struct stream *stream);

/** @return whether something has come that was not taken yet: what the kernel has counts too. A
 * read that waits for it completes. */
bool stream_has_come(struct stream *stream);

/**
 * Takes what the completed read found.
 * @param bytes points into the buffer, valid until the next call for this stream.
 * @return the number of bytes (a line with its newline, if it had one); -1 with `err`: ERROR_CLOSED
 * at the end, ERROR_PROTOCOL for a line that is too long, or what broke the connection.
 */
ptrdiff_t stream_take(struct stream *stream, const char **bytes, struct crown_error *err);

/** Queues bytes; the op of stream_write_op completes when all are on their way. One at a time.
 * @return as stream_read. */
int stream_write(struct stream *stream, const char *bytes, size_t size, struct crown_error *err);
struct op *stream_write_op(struct stream *stream);
/** After a completed write: another one may begin. */
void stream_write_ended(struct stream *stream);

/** No more writing: the other side reads an end of file. */
void stream_shutdown(struct stream *stream);

/** @return the socket, or -1. */
int stream_socket(const struct stream *stream);

/** "192.0.2.1:5432", or the UNIX socket's path. */
const char *stream_peer(const struct stream *stream);

/** Closes; what waits is completed with ERROR_CLOSED. The stream may be freed afterwards. */
void stream_close(struct stream *stream);
/** The same for one that is given up: the other side's system forgets it at once (channel_forget).
 */
void stream_reset(struct stream *stream);
void stream_free(struct stream *stream);

#endif

/** A connected socket, plain or with TLS: bytes in, bytes out, nothing kept. */
#ifndef CROWN_NET_CHANNEL_H
#define CROWN_NET_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/address.h"
#include "base/error.h"
#include "net/tls.h"

struct channel {
    int fd;                       /* -1: none */
    struct ssl_st *ssl;           /* NULL: plain */
    bool wants_write;             /* TLS must write before it can go on */
    bool short_io;                /* torture: one byte at a time */
    char peer[ADDRESS_TEXT_SIZE]; /* for errors */
};

/** What moving bytes can end with, besides a number of them. */
enum { CHANNEL_END = 0, CHANNEL_LATER = -1, CHANNEL_BROKEN = -2 };

/** How long a peer that acknowledges nothing goes unnoticed, unless told otherwise; and the least
 * that the kernel can be told. */
#define CHANNEL_SILENCE_NS (10 * NS_PER_S)
#define CHANNEL_SILENCE_LEAST_NS (2 * NS_PER_S)

/** Has the kernel ask a silent peer whether it is there (tcp(7)): without that, a lost way goes
 * unnoticed for two hours. Nothing happens on a UNIX socket. */
void channel_watch_silence(int fd, int64_t silence_ns);

/** From now on its close resets the connection. So the other side's system forgets it at once, also
 * where its program hangs and would not notice an end for long; what was not sent is lost. */
void channel_forget(int fd);

/** Takes a socket over, and sets it up for answers without delay and a peer that vanishes. */
void channel_open(struct channel *channel, int fd, const struct address *peer);

/** Begins TLS; channel_handshake goes on with it. @return 0, or -1 with ERROR_TLS. */
int channel_start_tls(struct channel *channel, const struct tls_context *tls, const char *host,
                      struct crown_error *err);

/** @return 1 when it is done; CHANNEL_LATER; or CHANNEL_BROKEN with ERROR_TLS. */
int channel_handshake(struct channel *channel, struct crown_error *err);

/** @return bytes received, CHANNEL_END, CHANNEL_LATER, or CHANNEL_BROKEN with `err`. */
ssize_t channel_receive(struct channel *channel, char *bytes, size_t size, struct crown_error *err);

/** @return bytes sent, CHANNEL_LATER, or CHANNEL_BROKEN with `err`: ERROR_CLOSED if it was closed.
 */
ssize_t channel_send(struct channel *channel, const char *bytes, size_t size,
                     struct crown_error *err);

/** Says goodbye, in TLS's words, as far as that goes without waiting. */
void channel_farewell(struct channel *channel);

/** No more sending: the other side reads an end of file. */
void channel_shutdown(struct channel *channel);

/** Closes the socket. Idempotent. */
void channel_close(struct channel *channel);

#endif

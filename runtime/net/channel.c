#include "net/channel.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/openssl.h"
#include "net/portion.h"

void channel_watch_silence(int fd, int64_t silence_ns)
{
    int on = 1, probes = 3;
    int64_t ms = silence_ns < CHANNEL_SILENCE_LEAST_NS ? CHANNEL_SILENCE_LEAST_NS / NS_PER_MS
                                                       : silence_ns / NS_PER_MS;
    int timeout_ms = ms < INT_MAX ? (int)ms : INT_MAX;
    int idle_s = timeout_ms / 2000 > 0 ? timeout_ms / 2000 : 1;
    int interval_s = timeout_ms / 6000 > 0 ? timeout_ms / 6000 : 1;
    /* UNIX sockets refuse these, and need none of them. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

void channel_forget(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    /* UNIX sockets take it, and need it not. */
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void channel_open(struct channel *channel, int fd, const struct address *peer)
{
    int on = 1;
    channel->fd = fd;
    address_text(peer, channel->peer, sizeof(channel->peer));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* refused by UNIX sockets */
    channel_watch_silence(fd, CHANNEL_SILENCE_NS);
}

static ssize_t ssl_result(struct channel *channel, int result, struct crown_error *err)
{
    int saved = errno;
    int why = openssl.SSL_get_error(channel->ssl, result);
    channel->wants_write = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return CHANNEL_LATER;
    if (why == SSL_ERROR_ZERO_RETURN || (why == SSL_ERROR_SYSCALL && saved == 0))
        return CHANNEL_END;
    if (why == SSL_ERROR_SYSCALL)
        (void)error_set_errno(err, saved, "TLS with %s", channel->peer);
    else
        (void)tls_error(channel->ssl, channel->peer, err);
    return CHANNEL_BROKEN;
}

int channel_start_tls(struct channel *channel, const struct tls_context *tls, const char *host,
                      struct crown_error *err)
{
    channel->ssl = tls_start(tls, channel->fd, host, err);
    return channel->ssl != NULL ? 0 : -1;
}

int channel_handshake(struct channel *channel, struct crown_error *err)
{
    openssl.ERR_clear_error();
    portion_begin();
    int result = openssl.SSL_do_handshake(channel->ssl);
    if (result == 1)
        return 1;
    ssize_t outcome = ssl_result(channel, result, err);
    if (outcome == CHANNEL_LATER)
        return CHANNEL_LATER;
    if (outcome == CHANNEL_END)
        (void)error_set(err, ERROR_TLS, "TLS with %s: the other side broke off: " TLS_IS_IT_ON,
                        channel->peer);
    err->code = ERROR_TLS;
    return CHANNEL_BROKEN;
}

ssize_t channel_receive(struct channel *channel, char *bytes, size_t size, struct crown_error *err)
{
    if (channel->short_io)
        size = 1;
    if (channel->ssl != NULL) {
        openssl.ERR_clear_error();
        portion_begin();
        int got = openssl.SSL_read(channel->ssl, bytes, (int)size);
        return got > 0 ? got : ssl_result(channel, got, err);
    }
    ssize_t got = recv(channel->fd, bytes, size, 0);
    if (got >= 0)
        return got;
    if (errno == EAGAIN || errno == EINTR)
        return CHANNEL_LATER;
    (void)error_set_errno(err, errno, "read from %s", channel->peer);
    return CHANNEL_BROKEN;
}

static ssize_t send_plain(struct channel *channel, const char *bytes, size_t size,
                          struct crown_error *err)
{
    ssize_t sent = send(channel->fd, bytes, size, MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EINTR)
        return CHANNEL_LATER;
    (void)error_set_errno(err, errno, "write to %s", channel->peer);
    return CHANNEL_BROKEN;
}

static ssize_t send_tls(struct channel *channel, const char *bytes, size_t size,
                        struct crown_error *err)
{
    openssl.ERR_clear_error();
    portion_begin(); /* it may have to read first */
    int sent = openssl.SSL_write(channel->ssl, bytes, (int)size);
    if (sent > 0)
        return sent;
    ssize_t result = ssl_result(channel, sent, err);
    return result == CHANNEL_END ? CHANNEL_BROKEN : result;
}

ssize_t channel_send(struct channel *channel, const char *bytes, size_t size,
                     struct crown_error *err)
{
    if (channel->short_io)
        size = 1;
    ssize_t sent = channel->ssl != NULL ? send_tls(channel, bytes, size, err)
                                        : send_plain(channel, bytes, size, err);
    if (sent == CHANNEL_BROKEN && err->code == ERROR_SYSTEM)
        err->code = ERROR_CLOSED;
    return sent;
}

void channel_farewell(struct channel *channel)
{
    if (channel->ssl != NULL)
        (void)openssl.SSL_shutdown(channel->ssl); /* one way is enough */
}

void channel_shutdown(struct channel *channel)
{
    channel_farewell(channel);
    (void)shutdown(channel->fd, SHUT_WR); /* gone already: the better */
}

void channel_close(struct channel *channel)
{
    if (channel->ssl != NULL)
        openssl.SSL_free(channel->ssl);
    channel->ssl = NULL;
    if (channel->fd >= 0)
        (void)close(channel->fd); /* what could not be sent is lost; the stream has said so */
    channel->fd = -1;
}

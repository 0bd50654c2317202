#include "http/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/container.h"
#include "net/channel.h"
#include "net/openssl.h"

struct socket {
    struct list_node link;
    int fd;
    bool owes; /* an answer, or the beginning of all */
};

void http_sockets_init(struct http_sockets *sockets)
{
    list_init(&sockets->open);
}

curl_socket_t http_socket_open(struct http_sockets *sockets, const struct curl_sockaddr *to)
{
    struct socket *one = calloc(1, sizeof(*one));
    if (one == NULL)
        return CURL_SOCKET_BAD;
    one->fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (one->fd < 0) {
        free(one);
        return CURL_SOCKET_BAD;
    }
    one->owes = true;
    list_append(&sockets->open, &one->link);
    return one->fd;
}

int http_socket_close(void *context, curl_socket_t fd)
{
    struct http_sockets *sockets = context;
    list_each(node, &sockets->open)
    {
        struct socket *one = container_of(node, struct socket, link);
        if (one->fd == fd) {
            if (one->owes)
                channel_forget(fd);
            list_remove(&one->link);
            free(one);
            break;
        }
    }
    return close(fd);
}

static bool is_at(const struct socket *one, int from, int to)
{
    struct address here = {.size = sizeof(here.storage)}, there = {.size = sizeof(there.storage)};
    return getsockname(one->fd, address_fill(&here), &here.size) == 0 &&
           getpeername(one->fd, address_fill(&there), &there.size) == 0 &&
           address_port(&here) == (unsigned)from && address_port(&there) == (unsigned)to;
}

void http_sockets_owe(const struct http_sockets *sockets, int here, int there, bool owes)
{
    list_each(node, &sockets->open)
    {
        struct socket *one = container_of(node, struct socket, link);
        if (is_at(one, here, there))
            one->owes = owes;
    }
}

/* Of a TLS record that holds more than the answer before, OpenSSL keeps the rest. */
static bool is_left_in_tls(CURL *easy)
{
    const struct curl_tlssessioninfo *tls = NULL;
    return curl.curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls) == CURLE_OK && tls != NULL &&
           tls->internals != NULL && tls->backend == CURLSSLBACKEND_OPENSSL &&
           openssl.SSL_pending != NULL && openssl.SSL_pending(tls->internals) > 0;
}

static bool is_silent(const struct socket *one)
{
    char byte;
    return recv(one->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool http_sockets_unasked(const struct http_sockets *sockets, CURL *easy, int here, int there)
{
    bool found = false, silent = true;
    list_each(node, &sockets->open)
    {
        const struct socket *one = container_of(node, struct socket, link);
        if (!is_at(one, here, there))
            continue;
        found = true;
        silent = silent && is_silent(one);
    }
    return !found || !silent || is_left_in_tls(easy); /* what cannot be looked at is not used */
}

#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

struct listener {
    struct loop_watch watch;
    listener_accepted *accepted;
    void *context;
    unsigned port;
};

union any_address {
    struct sockaddr plain;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static socklen_t make_address(const char *host, unsigned port, union any_address *address)
{
    memset(address, 0, sizeof(*address));
    if (strncmp(host, "unix:", 5) == 0 && strlen(host + 5) < sizeof(address->local.sun_path)) {
        address->local.sun_family = AF_UNIX;
        memcpy(address->local.sun_path, host + 5, strlen(host + 5) + 1);
        return sizeof(address->local);
    }
    if (inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons((uint16_t)port);
        return sizeof(address->v4);
    }
    if (inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        return sizeof(address->v6);
    }
    return 0;
}

static void listener_ready(struct loop_watch *watch, unsigned events)
{
    struct listener *listener =
        (struct listener *)((char *)watch - offsetof(struct listener, watch));
    (void)events;
    /* One a turn: the others wait in the kernel, and the callee may close us. */
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        listener->accepted(listener->context, fd);
}

static int open_socket(const char *host, unsigned port, unsigned *bound, struct crown_error *err)
{
    union any_address address;
    int on = 1;
    socklen_t size = make_address(host, port, &address);
    if (size == 0)
        return error_set(err, ERROR_USAGE, "listen on %s: an address or unix:/path expected", host);
    int fd = socket(address.plain.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "listen on %s", host);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* as good without */
    if (bind(fd, &address.plain, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &address.plain, &size) < 0) {
        int saved = errno;
        (void)close(fd);
        return error_set_errno(err, saved, "listen on %s port %u", host, port);
    }
    *bound = 0;
    if (address.plain.sa_family == AF_INET)
        *bound = ntohs(address.v4.sin_port);
    else if (address.plain.sa_family == AF_INET6)
        *bound = ntohs(address.v6.sin6_port);
    return fd;
}

struct listener *listener_open(struct loop *loop, const char *host, unsigned port,
                               listener_accepted *accepted, void *context, struct crown_error *err)
{
    struct listener *listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        (void)error_set(err, ERROR_MEMORY, "listen on %s: out of memory", host);
        return NULL;
    }
    int fd = open_socket(host, port, &listener->port, err);
    if (fd < 0) {
        free(listener);
        return NULL;
    }
    listener->accepted = accepted;
    listener->context = context;
    listener->watch.ready = listener_ready;
    loop_watch(loop, &listener->watch, fd, LOOP_READ);
    return listener;
}

unsigned listener_port(const struct listener *listener)
{
    return listener->port;
}

void listener_close(struct listener *listener)
{
    if (listener == NULL)
        return;
    int fd = listener->watch.fd;
    loop_unwatch(&listener->watch);
    (void)close(fd); /* nothing was written */
    free(listener);
}

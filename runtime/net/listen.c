#include "net/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/container.h"

#define BACKLOG 128
#define PAUSE_NS (100 * NS_PER_MS) /* while there are no descriptors, or no memory */

struct listener {
    struct loop *loop;
    int fd;
    struct loop_watch watch;
    struct loop_deadline pause;
    listener_accepted *accepted;
    void *context;
    unsigned port;
};

static void listener_ready(struct loop_watch *watch, unsigned events)
{
    struct listener *listener = container_of(watch, struct listener, watch);
    (void)events;
    /* One a turn: the others wait in the kernel, and the callee may close us. */
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        listener->accepted(listener->context, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        listener_pause(listener,
                       PAUSE_NS); /* it stays readable: to look again at once would spin */
    }
}

static void pause_over(struct loop_deadline *pause)
{
    struct listener *listener = container_of(pause, struct listener, pause);
    loop_watch(listener->loop, &listener->watch, listener->fd, LOOP_READ);
}

static int open_socket(const char *host, unsigned port, unsigned *bound, struct crown_error *err)
{
    struct address address;
    int on = 1;
    if (address_parse(&address, host, port) < 0)
        return error_set(err, ERROR_USAGE, "listen on %s: an address or unix:/path expected", host);
    int fd =
        socket(address_plain(&address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "listen on %s", host);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* as good without */
    if (bind(fd, address_plain(&address), address.size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, address_fill(&address), &address.size) < 0) {
        int saved = errno;
        (void)close(fd);
        return error_set_errno(err, saved, "listen on %s port %u", host, port);
    }
    *bound = address_port(&address);
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
    listener->fd = open_socket(host, port, &listener->port, err);
    if (listener->fd < 0) {
        free(listener);
        return NULL;
    }
    listener->loop = loop;
    listener->accepted = accepted;
    listener->context = context;
    listener->watch.ready = listener_ready;
    listener->pause.fire = pause_over;
    loop_watch(loop, &listener->watch, listener->fd, LOOP_READ);
    return listener;
}

unsigned listener_port(const struct listener *listener)
{
    return listener->port;
}

void listener_pause(struct listener *listener, int64_t ns)
{
    loop_unwatch(&listener->watch);
    loop_at(listener->loop, &listener->pause, clock_add_ns(loop_now(listener->loop), ns));
}

void listener_close(struct listener *listener)
{
    if (listener == NULL)
        return;
    loop_unwatch(&listener->watch);
    loop_at_cancel(listener->loop, &listener->pause);
    (void)close(listener->fd); /* nothing was written */
    free(listener);
}

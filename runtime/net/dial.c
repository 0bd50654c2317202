#include "net/dial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "net/resolve.h"

struct dial {
    struct loop *loop;
    dialled *done;
    void *context;
    struct resolution *resolution;
    struct loop_job job; /* an address that needs no looking up is tried from the loop, too */
    struct loop_watch watch;
    int fd;
    struct address addresses[RESOLVE_MAX];
    size_t count, next;
};

static void end(struct dial *dial, const struct crown_error *err)
{
    struct address address = dial->addresses[dial->next > 0 ? dial->next - 1 : 0];
    int fd = dial->fd;
    dialled *done = dial->done;
    void *context = dial->context;
    dial->fd = -1;
    dial_cancel(dial);
    done(context, fd, err == NULL ? &address : NULL, err);
}

static void try_next(struct dial *dial);

static void failed(struct dial *dial, int saved)
{
    struct crown_error err = {0};
    char name[ADDRESS_TEXT_SIZE];
    loop_unwatch(&dial->watch);
    if (dial->fd >= 0)
        (void)close(dial->fd); /* never used */
    dial->fd = -1;
    if (dial->next < dial->count) {
        try_next(dial);
        return;
    }
    address_text(&dial->addresses[dial->next - 1], name, sizeof(name));
    (void)error_set_errno(&err, saved, "connect to %s", name);
    if (saved == ECONNREFUSED)
        err.code = ERROR_REFUSED;
    if (saved == EPIPE || saved == ECONNRESET)
        err.code = ERROR_CLOSED;
    end(dial, &err);
}

/* Starts with the next address; one that fails gives way to the one after it. */
static void try_next(struct dial *dial)
{
    const struct address *address = &dial->addresses[dial->next++];
    dial->fd =
        socket(address_plain(address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (dial->fd < 0)
        failed(dial, errno);
    else if (connect(dial->fd, address_plain(address), address->size) == 0)
        end(dial, NULL);
    else if (errno != EINPROGRESS)
        failed(dial, errno);
    else
        loop_watch(dial->loop, &dial->watch, dial->fd, LOOP_WRITE);
}

static void ready(struct loop_watch *watch, unsigned events)
{
    struct dial *dial = container_of(watch, struct dial, watch);
    int error = 0;
    socklen_t size = sizeof(error);
    (void)events;
    if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error != 0)
        failed(dial, error);
    else
        end(dial, NULL);
}

static void found(void *context, const struct address *addresses, size_t count,
                  const struct crown_error *err)
{
    struct dial *dial = context;
    dial->resolution = NULL;
    if (count == 0) {
        end(dial, err);
        return;
    }
    dial->count = count < RESOLVE_MAX ? count : RESOLVE_MAX;
    memcpy(dial->addresses, addresses, dial->count * sizeof(*addresses));
    try_next(dial);
}

static void start_job(struct loop_job *job)
{
    try_next(container_of(job, struct dial, job));
}

static int look_up(struct dial *dial, const char *host, const char *port, struct crown_error *err)
{
    struct resolver *resolver = resolver_get(dial->loop, err);
    if (resolver == NULL)
        return -1;
    dial->resolution = resolve(resolver, host, port, found, dial, err);
    return dial->resolution != NULL ? 0 : -1;
}

static int begin(struct dial *dial, const char *host, const char *port, struct crown_error *err)
{
    unsigned number = (unsigned)strtoul(port, NULL, 10);
    if (address_parse(&dial->addresses[0], host, number) == 0) {
        dial->count = 1;
        loop_post(dial->loop, &dial->job);
        return 0;
    }
    if (strncmp(host, "unix:", 5) == 0)
        return error_set(err, ERROR_USAGE, "connect to %s: the path is too long", host);
    return look_up(dial, host, port, err);
}

struct dial *dial_start(struct loop *loop, const char *host, const char *port, dialled *done,
                        void *context, struct crown_error *err)
{
    struct dial *dial = calloc(1, sizeof(*dial));
    if (dial == NULL) {
        (void)error_set(err, ERROR_MEMORY, "connect to %s: out of memory", host);
        return NULL;
    }
    dial->loop = loop;
    dial->done = done;
    dial->context = context;
    dial->fd = -1;
    dial->watch.ready = ready;
    dial->job.run = start_job;
    if (begin(dial, host, port, err) < 0) {
        dial_cancel(dial);
        return NULL;
    }
    return dial;
}

void dial_cancel(struct dial *dial)
{
    if (dial == NULL)
        return;
    resolution_cancel(dial->resolution);
    loop_unpost(dial->loop, &dial->job);
    loop_unwatch(&dial->watch);
    if (dial->fd >= 0)
        (void)close(dial->fd); /* never used */
    free(dial);
}

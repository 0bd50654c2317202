#include "postgres/parting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "loop/helper.h"

#define FORGOTTEN_MOST_NS (3600 * NS_PER_S)
#define CANCEL_AGAIN_NS (NS_PER_S / 2) /* what was sent behind a statement has its turn then */
#define CANCEL_MOST_NS (30 * NS_PER_S)
#define DISCARD_SIZE 16384

struct postgres_partings {
    struct loop *loop;
    struct list list;
    int64_t first_ns, wait_ns;
    struct loop_deadline forget;        /* one of them */
    size_t servers;                     /* the most that were found */
    bool left;                          /* by the client: it is freed with the last one */
    bool cancelling;                    /* one at a time: that connection may hang, too */
    struct postgres_parting *cancelled; /* what that is for; NULL: it is over */
};

struct postgres_parting {
    struct list_node link;
    struct postgres_partings *of;
    struct loop_watch watch; /* of the socket, which is ours */
    struct loop_deadline cancel_due;
    int64_t cancel_pause_ns;
    PGcancel *cancel; /* NULL: there is nothing to cancel, or it is being done */
    char place[POSTGRES_PLACE_SIZE];
};

static void free_if_done(struct postgres_partings *partings)
{
    if (!partings->left || !list_empty(&partings->list) || partings->cancelling)
        return;
    loop_at_cancel(partings->loop, &partings->forget);
    free(partings);
}

/* The next one is forgotten when so much time has passed without any that was closed. */
static void wait_for_end(struct postgres_partings *partings)
{
    loop_at(partings->loop, &partings->forget,
            clock_add_ns(loop_now(partings->loop), partings->wait_ns));
}

/* --- the end of one */

static void end(struct postgres_parting *parting)
{
    struct postgres_partings *partings = parting->of;
    list_remove(&parting->link);
    loop_at_cancel(partings->loop, &parting->cancel_due);
    if (parting->watch.fd >= 0) {
        loop_unwatch(&parting->watch);
        (void)close(parting->watch.fd);
    }
    if (partings->cancelled == parting)
        partings->cancelled = NULL;
    libpq.PQfreeCancel(parting->cancel);
    free(parting);
    free_if_done(partings);
}

/* @return the one that has been waited for longest; NULL: there is none, or none whose connection
 * a thread has given back. */
static struct postgres_parting *oldest(const struct postgres_partings *partings)
{
    list_each(node, &partings->list)
    {
        struct postgres_parting *parting = container_of(node, struct postgres_parting, link);
        if (parting->watch.fd >= 0)
            return parting;
    }
    return NULL;
}

static void forget(struct loop_deadline *deadline)
{
    struct postgres_partings *partings = container_of(deadline, struct postgres_partings, forget);
    struct postgres_parting *parting = oldest(partings);
    if (parting == NULL)
        return; /* the next one waits anew */
    partings->wait_ns =
        partings->wait_ns < FORGOTTEN_MOST_NS / 2 ? 2 * partings->wait_ns : FORGOTTEN_MOST_NS;
    wait_for_end(partings);
    end(parting);
}

/* What the server says yet is for nobody. */
static void ready(struct loop_watch *watch, unsigned events)
{
    struct postgres_parting *parting = container_of(watch, struct postgres_parting, watch);
    char discarded[DISCARD_SIZE];
    ssize_t got = recv(watch->fd, discarded, sizeof(discarded), MSG_DONTWAIT);
    (void)events;
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (got == 0) {
        parting->of->wait_ns = parting->of->first_ns;
        wait_for_end(parting->of);
    }
    end(parting);
}

/* --- cancelling, on a thread: libpq waits for the server to close that connection */

static void cancel_run(void *work, int given_up)
{
    char problem[256];
    (void)given_up;
    (void)libpq.PQcancel(work, problem, sizeof(problem)); /* another time, then */
}

static void cancel_drop(void *work)
{
    libpq.PQfreeCancel(work);
}

static void cancel_done(void *context, void *work)
{
    struct postgres_partings *partings = context;
    struct postgres_parting *parting = partings->cancelled;
    partings->cancelling = false;
    partings->cancelled = NULL;
    if (parting == NULL) {
        libpq.PQfreeCancel(work);
        free_if_done(partings);
        return;
    }
    parting->cancel = work;
    loop_at(partings->loop, &parting->cancel_due,
            clock_add_ns(loop_now(partings->loop), parting->cancel_pause_ns));
    if (parting->cancel_pause_ns < CANCEL_MOST_NS)
        parting->cancel_pause_ns *= 2;
}

static void cancel_due(struct loop_deadline *deadline)
{
    static const struct helper_kind kind = {"pg-cancel", cancel_run, cancel_done, cancel_drop,
                                            true};
    struct postgres_parting *parting = container_of(deadline, struct postgres_parting, cancel_due);
    struct postgres_partings *partings = parting->of;
    struct crown_error err;
    if (!partings->cancelling && helper_start(partings->loop, &kind, parting->place,
                                              parting->cancel, partings, &err) != NULL) {
        partings->cancelling = true;
        partings->cancelled = parting;
        parting->cancel = NULL;
        return;
    }
    loop_at(partings->loop, deadline, clock_add_ns(loop_now(partings->loop), CANCEL_AGAIN_NS));
}

/* --- the beginning of one */

struct postgres_parting *postgres_parting_begin(struct postgres_partings *partings,
                                                const char *place)
{
    struct postgres_parting *parting = calloc(1, sizeof(*parting));
    if (parting == NULL)
        return NULL;
    parting->of = partings;
    parting->watch = (struct loop_watch){.ready = ready, .fd = -1};
    parting->cancel_due.fire = cancel_due;
    parting->cancel_pause_ns = CANCEL_AGAIN_NS;
    (void)snprintf(parting->place, sizeof(parting->place), "%s", place);
    list_append(&partings->list, &parting->link);
    return parting;
}

/* @return our own descriptor of a connection that a server may know of, which libpq is done with;
 * or -1. */
static int farewell(PGconn *conn)
{
    struct address peer = {.size = sizeof(peer.storage)};
    int socket = libpq.PQsocket(conn);
    int fd = socket >= 0 && getpeername(socket, address_fill(&peer), &peer.size) == 0
                 ? fcntl(socket, F_DUPFD_CLOEXEC, 0)
                 : -1;
    libpq.PQfinish(conn);
    if (fd >= 0)
        (void)shutdown(fd, SHUT_WR); /* fails where the server has closed it meanwhile */
    return fd;
}

void postgres_parting_take(struct postgres_parting *parting, PGconn *conn, bool busy)
{
    if (parting == NULL || conn == NULL) {
        libpq.PQfinish(conn);
        if (parting != NULL)
            end(parting);
        return;
    }
    struct loop *loop = parting->of->loop;
    parting->cancel = busy ? libpq.PQgetCancel(conn) : NULL;
    int fd = farewell(conn);
    if (fd < 0) {
        end(parting);
        return;
    }
    loop_watch(loop, &parting->watch, fd, LOOP_READ);
    if (!loop_at_armed(&parting->of->forget))
        wait_for_end(parting->of);
    if (parting->cancel != NULL)
        loop_at(loop, &parting->cancel_due, loop_now(loop));
}

void postgres_part(struct postgres_partings *partings, PGconn *conn, const char *place, bool busy)
{
    postgres_parting_take(postgres_parting_begin(partings, place), conn, busy);
}

/* --- all of them */

struct postgres_partings *postgres_partings_new(struct loop *loop, int64_t first_ns)
{
    struct postgres_partings *partings = calloc(1, sizeof(*partings));
    if (partings == NULL)
        return NULL;
    partings->loop = loop;
    partings->first_ns = partings->wait_ns = first_ns;
    partings->servers = 1;
    partings->forget.fire = forget;
    list_init(&partings->list);
    return partings;
}

void postgres_partings_leave(struct postgres_partings *partings)
{
    if (partings == NULL)
        return;
    partings->left = true;
    free_if_done(partings);
}

int postgres_partings_check(const struct postgres_partings *partings, const char *place,
                            struct crown_error *err)
{
    unsigned count = 0;
    list_each(node, &partings->list) count +=
        strcmp(container_of(node, struct postgres_parting, link)->place, place) == 0;
    if (count < POSTGRES_PARTINGS_MOST)
        return 0;
    return error_set(err, ERROR_CLOSED,
                     "%s has not closed %u connections that were given up: it gets no other one "
                     "before it has",
                     place, count);
}

unsigned postgres_partings_count(const struct postgres_partings *partings)
{
    unsigned count = partings->cancelling ? 1 : 0;
    list_each(node, &partings->list) count++;
    return count;
}

void postgres_partings_expect(struct postgres_partings *partings, size_t servers)
{
    if (servers > partings->servers)
        partings->servers = servers;
}

unsigned postgres_partings_limit(const struct postgres_partings *partings)
{
    return (unsigned)partings->servers * POSTGRES_PARTINGS_MOST + 1;
}

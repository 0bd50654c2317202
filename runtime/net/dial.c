#include "net/dial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "net/resolve.h"

/* How long an address is alone before the next one is tried beside it: RFC 8305, 5. */
#define HEAD_START_NS (250 * NS_PER_MS)

struct dial;

struct attempt {
    struct dial *dial;
    struct loop_watch watch;
    int fd; /* -1: not under way */
};

struct dial {
    struct loop *loop;
    dialled *done;
    void *context;
    struct resolution *resolution;
    struct loop_job job; /* an address that needs no looking up is tried from the loop, too */
    struct loop_deadline head_start;
    struct attempt attempts[RESOLVE_MAX]; /* one for each address */
    struct address addresses[RESOLVE_MAX];
    size_t count, next, under_way;
};

static void stop(struct attempt *attempt)
{
    if (attempt->fd < 0)
        return;
    loop_unwatch(&attempt->watch);
    (void)close(attempt->fd); /* never used */
    attempt->fd = -1;
    attempt->dial->under_way--;
}

/* @param attempt the one that is connected, or NULL with `err`. */
static void end(struct dial *dial, struct attempt *attempt, const struct crown_error *err)
{
    struct address address = {0};
    int fd = -1;
    dialled *done = dial->done;
    void *context = dial->context;
    if (attempt != NULL) {
        address = dial->addresses[attempt - dial->attempts];
        fd = attempt->fd;
        loop_unwatch(&attempt->watch);
        attempt->fd = -1;
    }
    dial_cancel(dial);
    done(context, fd, attempt != NULL ? &address : NULL, err);
}

/* Starts with the next address. @return 0, or errno when it has failed already. */
static int start_next(struct dial *dial)
{
    const struct address *address = &dial->addresses[dial->next];
    struct attempt *attempt = &dial->attempts[dial->next++];
    attempt->fd =
        socket(address_plain(address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt->fd < 0)
        return errno;
    dial->under_way++;
    if (connect(attempt->fd, address_plain(address), address->size) < 0 && errno != EINPROGRESS) {
        int saved = errno;
        stop(attempt);
        return saved;
    }
    loop_watch(dial->loop, &attempt->watch, attempt->fd, LOOP_WRITE);
    return 0;
}

static void fail(struct dial *dial, int saved)
{
    struct crown_error err = {0};
    char name[ADDRESS_TEXT_SIZE];
    address_text(&dial->addresses[dial->next - 1], name, sizeof(name));
    (void)error_set_errno(&err, saved, "connect to %s", name);
    if (saved == ECONNREFUSED)
        err.code = ERROR_REFUSED;
    if (saved == EPIPE || saved == ECONNRESET)
        err.code = ERROR_CLOSED;
    end(dial, NULL, &err);
}

/* One that fails gives way to the next one at once; the last failure is told when none is left. */
static void try_next(struct dial *dial, int saved)
{
    while (dial->next < dial->count) {
        saved = start_next(dial);
        if (saved != 0)
            continue;
        if (dial->next < dial->count)
            loop_at(dial->loop, &dial->head_start,
                    clock_add_ns(loop_now(dial->loop), HEAD_START_NS));
        return;
    }
    if (dial->under_way == 0)
        fail(dial, saved);
}

static void head_start_over(struct loop_deadline *head_start)
{
    try_next(container_of(head_start, struct dial, head_start), 0);
}

static void ready(struct loop_watch *watch, unsigned events)
{
    struct attempt *attempt = container_of(watch, struct attempt, watch);
    struct dial *dial = attempt->dial;
    int error = 0;
    socklen_t size = sizeof(error);
    (void)events;
    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error == 0) {
        end(dial, attempt, NULL);
        return;
    }
    stop(attempt);
    try_next(dial, error);
}

/* In turns, one family and the other: when one of them leads nowhere, the other is near. */
static void take_in_turns(struct dial *dial, const struct address *addresses, size_t count)
{
    size_t at[2] = {0, 0};
    int first = address_plain(&addresses[0])->sa_family;
    for (size_t turn = 0; dial->count < count; turn++) {
        size_t *next = &at[turn % 2];
        while (*next < count &&
               (address_plain(&addresses[*next])->sa_family == first) != (turn % 2 == 0))
            ++*next;
        if (*next < count)
            dial->addresses[dial->count++] = addresses[(*next)++];
    }
}

static void found(void *context, const struct address *addresses, size_t count,
                  const struct crown_error *err)
{
    struct dial *dial = context;
    dial->resolution = NULL;
    if (count == 0) {
        end(dial, NULL, err);
        return;
    }
    take_in_turns(dial, addresses, count < RESOLVE_MAX ? count : RESOLVE_MAX);
    try_next(dial, 0);
}

static void start_job(struct loop_job *job)
{
    try_next(container_of(job, struct dial, job), 0);
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
    dial->job.run = start_job;
    dial->head_start.fire = head_start_over;
    for (size_t i = 0; i < RESOLVE_MAX; i++)
        dial->attempts[i] = (struct attempt){.dial = dial, .watch = {.ready = ready}, .fd = -1};
    if (begin(dial, host, port, err) < 0) {
        dial_cancel(dial);
        return NULL;
    }
    return dial;
}

bool dial_is_resolving(const struct dial *dial)
{
    return dial->resolution != NULL;
}

void dial_cancel(struct dial *dial)
{
    if (dial == NULL)
        return;
    resolution_cancel(dial->resolution);
    loop_unpost(dial->loop, &dial->job);
    loop_at_cancel(dial->loop, &dial->head_start);
    for (size_t i = 0; i < dial->next; i++)
        stop(&dial->attempts[i]);
    free(dial);
}

#include "net/resolve.h"

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/container.h"
#include "net/late.h"

#define SOCKETS_MAX 16
#define TIMEOUT_MS 2000 /* of one try at one server; the caller's own deadline bounds the whole */
#define TRIES 2
#define RESOLV_CONF "/etc/resolv.conf"
#define REOPEN_NS (1 * NS_PER_S) /* after a failure, at the most so often */
/* After so long each family is asked for by itself: some servers are silent when asked for one. */
#define APART_AFTER_NS (200 * NS_PER_MS)

struct resolver {
    struct loop *loop;
    ares_channel channel;
    struct loop_watch watches[SOCKETS_MAX];
    struct loop_deadline timer;
    struct stat source; /* of resolv.conf, as it was read */
    int64_t opened_ns;
    size_t pending;        /* resolutions */
    bool failed;           /* no server has answered: perhaps there are others by now */
    bool retired;          /* its last resolution frees it */
    struct resolver *next; /* of other loops, for tests have several; and retired ones */
};

struct resolution {
    struct resolver *resolver;
    resolved *done; /* NULL: nobody is interested any more */
    void *context;
    struct loop_job job; /* the answer goes through the run queue */
    struct loop_deadline apart;
    struct loop *loop;
    int questions; /* that c-ares has not ended: it knows no other end of one than its answer */
    bool settled, told;
    bool was_late; /* the answer had come before it was asked for */
    char host[256];
    uint16_t port;
    struct address addresses[RESOLVE_MAX];
    size_t count;
    struct crown_error error;
};

static struct resolver *resolvers;

static void arm(struct resolver *resolver)
{
    struct timeval left;
    struct timeval *next = ares_timeout(resolver->channel, NULL, &left);
    if (next == NULL) {
        loop_at_cancel(resolver->loop, &resolver->timer);
        return;
    }
    int64_t ns = (int64_t)next->tv_sec * NS_PER_S + next->tv_usec * NS_PER_US;
    loop_at(resolver->loop, &resolver->timer, clock_add_ns(loop_now(resolver->loop), ns));
}

static void timer_due(struct loop_deadline *timer)
{
    struct resolver *resolver = container_of(timer, struct resolver, timer);
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    arm(resolver);
}

static struct resolver *of_watch(const struct loop_watch *watch)
{
    for (struct resolver *resolver = resolvers; resolver != NULL; resolver = resolver->next)
        if (watch >= resolver->watches && watch < resolver->watches + SOCKETS_MAX)
            return resolver;
    abort(); /* a watch that is none of ours cannot be called back */
}

static void socket_ready(struct loop_watch *watch, unsigned events)
{
    struct resolver *resolver = of_watch(watch);
    int fd = watch->fd;
    ares_process_fd(resolver->channel, (events & LOOP_READ) != 0 ? fd : ARES_SOCKET_BAD,
                    (events & LOOP_WRITE) != 0 ? fd : ARES_SOCKET_BAD);
    arm(resolver);
}

/* c-ares opens and closes sockets as it pleases, and says here what it waits for. */
static void socket_state(void *context, ares_socket_t fd, int readable, int writable)
{
    struct resolver *resolver = context;
    struct loop_watch *unused = NULL;
    struct loop_watch *found = NULL;
    for (int i = 0; i < SOCKETS_MAX; i++) {
        struct loop_watch *watch = &resolver->watches[i];
        if (watch->events != 0 && watch->fd == fd)
            found = watch;
        else if (watch->events == 0)
            unused = watch;
    }
    if (found == NULL)
        found = unused;
    if (found == NULL)
        return; /* more servers than we watch: c-ares' timeouts move it on */
    found->ready = socket_ready;
    if (readable || writable)
        loop_watch(resolver->loop, found, fd,
                   (readable ? LOOP_READ : 0) | (writable ? LOOP_WRITE : 0));
    else
        loop_unwatch(found);
}

static int open_channel(struct resolver *resolver, struct crown_error *err)
{
    struct ares_options options = {.sock_state_cb = socket_state,
                                   .sock_state_cb_data = resolver,
                                   .timeout = TIMEOUT_MS,
                                   .tries = TRIES};
    int status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status == ARES_SUCCESS)
        status = ares_init_options(&resolver->channel, &options,
                                   ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
    const char *servers = getenv("CROWN_DNS_SERVERS");
    if (status == ARES_SUCCESS && servers != NULL && servers[0] != '\0')
        status = ares_set_servers_ports_csv(resolver->channel, servers);
    if (status != ARES_SUCCESS)
        return error_set(err, ERROR_DNS, "set up name resolution: %s", ares_strerror(status));
    return 0;
}

static void look_at_source(struct stat *source)
{
    if (stat(RESOLV_CONF, source) < 0)
        *source = (struct stat){0}; /* none, which is another one than any */
}

/* c-ares reads resolv.conf once. A program that starts before the network would have to make do
 * with that for ever. */
static bool is_out_of_date(const struct resolver *resolver)
{
    struct stat now;
    look_at_source(&now);
    const struct stat *then = &resolver->source;
    bool same = now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
                now.st_size == then->st_size && now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
                now.st_mtim.tv_nsec == then->st_mtim.tv_nsec;
    return !same ||
           (resolver->failed && loop_now(resolver->loop) - resolver->opened_ns > REOPEN_NS);
}

static void resolver_free(struct resolver *resolver)
{
    struct resolver **at = &resolvers;
    while (*at != resolver)
        at = &(*at)->next;
    *at = resolver->next;
    ares_destroy(resolver->channel);
    loop_at_cancel(resolver->loop, &resolver->timer);
    for (int i = 0; i < SOCKETS_MAX; i++)
        loop_unwatch(&resolver->watches[i]);
    free(resolver);
    ares_library_cleanup();
}

static struct resolver *current(const struct loop *loop)
{
    struct resolver *resolver = resolvers;
    while (resolver != NULL && (resolver->loop != loop || resolver->retired))
        resolver = resolver->next;
    return resolver;
}

const char *resolve_library(void)
{
    return ares_version(NULL);
}

struct resolver *resolver_get(struct loop *loop, struct crown_error *err)
{
    struct resolver *resolver = current(loop);
    if (resolver != NULL && !is_out_of_date(resolver))
        return resolver;
    if (resolver != NULL && resolver->pending == 0)
        resolver_free(resolver);
    else if (resolver != NULL)
        resolver->retired = true;
    resolver = calloc(1, sizeof(*resolver));
    if (resolver == NULL) {
        (void)error_set(err, ERROR_MEMORY, "set up name resolution: out of memory");
        return NULL;
    }
    resolver->loop = loop;
    resolver->timer.fire = timer_due;
    resolver->opened_ns = loop_now(loop);
    look_at_source(&resolver->source);
    if (open_channel(resolver, err) < 0) {
        free(resolver);
        return NULL;
    }
    resolver->next = resolvers;
    resolvers = resolver;
    return resolver;
}

void resolver_close(struct loop *loop)
{
    struct resolver *next;
    for (struct resolver *resolver = resolvers; resolver != NULL; resolver = next) {
        next = resolver->next;
        if (resolver->loop == loop)
            resolver_free(resolver);
    }
}

/* Tells the answer, and frees what c-ares does not know any more: never from within its call-backs,
 * since a resolver may go with its last resolution. */
static void answer_job(struct loop_job *job)
{
    struct resolution *resolution = container_of(job, struct resolution, job);
    struct resolver *resolver = resolution->resolver;
    if (!resolution->told && resolution->done != NULL)
        resolution->done(resolution->context, resolution->addresses, resolution->count,
                         &resolution->error);
    else if (!resolution->told && resolution->count > 0 && !resolution->was_late)
        late_keep(resolution->host, resolution->addresses, resolution->count,
                  loop_now(resolution->loop));
    resolution->told = true;
    if (resolution->questions > 0)
        return;
    free(resolution);
    if (--resolver->pending == 0 && resolver->retired)
        resolver_free(resolver);
}

static void take_addresses(struct resolution *resolution, const struct ares_addrinfo *result)
{
    for (const struct ares_addrinfo_node *node = result->nodes;
         node != NULL && resolution->count < RESOLVE_MAX; node = node->ai_next) {
        struct address *address = &resolution->addresses[resolution->count];
        if (node->ai_addrlen > sizeof(address->storage))
            continue;
        memcpy(&address->storage, node->ai_addr, node->ai_addrlen);
        address->size = node->ai_addrlen;
        resolution->count++;
    }
}

/* RFC 6761, 6.3: this name is the loopback, whether or not /etc/hosts is there to say so. */
static void add_loopback(struct resolution *resolution)
{
    const char *loopback[] = {"127.0.0.1", "::1"};
    for (size_t i = 0; i < 2; i++)
        if (address_parse(&resolution->addresses[resolution->count], loopback[i],
                          resolution->port) == 0)
            resolution->count++;
}

static void settle(struct resolution *resolution, int status)
{
    if (resolution->settled)
        return;
    resolution->settled = true;
    loop_at_cancel(resolution->loop, &resolution->apart);
    if (resolution->count == 0 && strcasecmp(resolution->host, "localhost") == 0)
        add_loopback(resolution);
    if (resolution->count == 0)
        (void)error_set(&resolution->error, ERROR_DNS, "look up %s: %s", resolution->host,
                        ares_strerror(status == ARES_SUCCESS ? ARES_ENODATA : status));
    loop_post(resolution->loop, &resolution->job);
}

static void end_if_told(struct resolution *resolution)
{
    if (resolution->told && resolution->questions == 0)
        loop_post(resolution->loop, &resolution->job);
}

/* The resolver is closing. */
static void destroyed(struct resolution *resolution)
{
    if (resolution->questions > 0 || (resolution->settled && !resolution->told))
        return;
    loop_at_cancel(resolution->loop, &resolution->apart);
    free(resolution);
}

static void take_answer(struct resolution *resolution, struct ares_addrinfo *result)
{
    if (result == NULL)
        return;
    if (!resolution->settled)
        take_addresses(resolution, result);
    ares_freeaddrinfo(result);
}

/* @return whether the resolution goes on. */
static bool take_question(struct resolution *resolution, int status, struct ares_addrinfo *result)
{
    resolution->questions--;
    if (status == ARES_EDESTRUCTION) {
        destroyed(resolution);
        return false;
    }
    take_answer(resolution, result);
    return true;
}

static void answered(void *context, int status, int timeouts, struct ares_addrinfo *result)
{
    struct resolution *resolution = context;
    (void)timeouts;
    if (!take_question(resolution, status, result))
        return;
    resolution->resolver->failed =
        status != ARES_SUCCESS && status != ARES_ENOTFOUND && status != ARES_ENODATA;
    settle(resolution, status);
    end_if_told(resolution);
}

/* That there is none of one family says nothing: the question for both ends in any case. */
static void family_answered(void *context, int status, int timeouts, struct ares_addrinfo *result)
{
    struct resolution *resolution = context;
    (void)timeouts;
    if (!take_question(resolution, status, result))
        return;
    if (resolution->count > 0)
        settle(resolution, status);
    end_if_told(resolution);
}

static void ask(struct resolution *resolution, int family, ares_addrinfo_callback answer)
{
    const struct ares_addrinfo_hints hints = {
        .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_NUMERICSERV};
    char port[sizeof("65535")];
    (void)snprintf(port, sizeof(port), "%u", (unsigned)resolution->port);
    resolution->questions++;
    ares_getaddrinfo(resolution->resolver->channel, resolution->host, port, &hints, answer,
                     resolution);
}

static void ask_apart(struct loop_deadline *apart)
{
    struct resolution *resolution = container_of(apart, struct resolution, apart);
    ask(resolution, AF_INET6, family_answered);
    ask(resolution, AF_INET, family_answered);
    arm(resolution->resolver);
}

struct resolution *resolve(struct resolver *resolver, const char *host, const char *port,
                           resolved *done, void *context, struct crown_error *err)
{
    struct resolution *resolution = calloc(1, sizeof(*resolution));
    if (resolution == NULL || strlen(host) >= sizeof(resolution->host)) {
        free(resolution);
        (void)error_set(err, ERROR_DNS, "look up a name of %zu characters: too long", strlen(host));
        return NULL;
    }
    resolution->resolver = resolver;
    resolver->pending++;
    resolution->done = done;
    resolution->context = context;
    resolution->loop = resolver->loop;
    resolution->job.run = answer_job;
    resolution->apart.fire = ask_apart;
    resolution->port = (uint16_t)strtoul(port, NULL, 10);
    memcpy(resolution->host, host, strlen(host) + 1);
    resolution->count =
        late_find(host, resolution->port, resolution->addresses, loop_now(resolution->loop));
    resolution->was_late = resolution->count > 0;
    if (resolution->was_late) {
        settle(resolution, ARES_SUCCESS);
        return resolution;
    }
    loop_at(resolution->loop, &resolution->apart,
            clock_add_ns(loop_now(resolution->loop), APART_AFTER_NS));
    ask(resolution, AF_UNSPEC, answered);
    arm(resolver);
    return resolution;
}

void resolution_cancel(struct resolution *resolution)
{
    if (resolution == NULL)
        return;
    resolution->done = NULL; /* it frees itself when its answer comes */
    loop_at_cancel(resolution->loop, &resolution->apart);
}

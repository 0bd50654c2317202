#include "http/transfers.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "net/portion.h"

struct transfers {
    struct transfers *next; /* a process has one loop, tests may have more */
    struct list members;
    struct loop *loop;
    CURLM *multi;
    struct http_hosts *hosts;
    struct http_sockets sockets;
    struct loop_deadline timer;
};

/* A socket of libcurl's, watched as it says. */
struct socket_watch {
    struct loop_watch watch;
    struct transfers *transfers;
};

static struct transfers *all;

static void take_finished(struct transfers *transfers)
{
    int left;
    CURLMsg *message;
    while ((message = curl.curl_multi_info_read(transfers->multi, &left)) != NULL) {
        char *private = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result;
        (void)curl.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        struct transfer *transfer = (struct transfer *)(void *)private;
        transfer->finished(transfer, result);
    }
}

static void act(struct transfers *transfers, curl_socket_t fd, int events)
{
    int running;
    portion_begin();
    (void)curl.curl_multi_socket_action(transfers->multi, fd, events, &running);
    take_finished(transfers);
}

static void socket_ready(struct loop_watch *watch, unsigned events)
{
    const struct socket_watch *socket = container_of(watch, struct socket_watch, watch);
    act(socket->transfers, watch->fd,
        ((events & LOOP_READ) != 0 ? CURL_CSELECT_IN : 0) |
            ((events & LOOP_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct transfers *transfers = context;
    struct socket_watch *socket = known;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL)
            loop_unwatch(&socket->watch);
        free(socket);
        (void)curl.curl_multi_assign(transfers->multi, fd, NULL); /* it is known */
        return 0;
    }
    if (socket == NULL) {
        socket = calloc(1, sizeof(*socket));
        if (socket == NULL)
            return -1;
        socket->transfers = transfers;
        socket->watch.ready = socket_ready;
        (void)curl.curl_multi_assign(transfers->multi, fd, socket);
    }
    loop_watch(transfers->loop, &socket->watch, fd,
               ((what & CURL_POLL_IN) != 0 ? LOOP_READ : 0) |
                   ((what & CURL_POLL_OUT) != 0 ? LOOP_WRITE : 0));
    return 0;
}

static void timer_due(struct loop_deadline *timer)
{
    act(container_of(timer, struct transfers, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int timer_wanted(CURLM *multi, long timeout_ms, void *context)
{
    struct transfers *transfers = context;
    (void)multi;
    if (timeout_ms < 0)
        loop_at_cancel(transfers->loop, &transfers->timer);
    else
        loop_at(transfers->loop, &transfers->timer,
                clock_add_ns(loop_now(transfers->loop), timeout_ms * NS_PER_MS));
    return 0;
}

struct transfers *transfers_of(struct loop *loop, struct crown_error *err)
{
    struct transfers *transfers = all;
    while (transfers != NULL && transfers->loop != loop)
        transfers = transfers->next;
    if (transfers != NULL || curl_load(err) < 0)
        return transfers;
    transfers = calloc(1, sizeof(*transfers));
    if (transfers != NULL) {
        transfers->multi = curl.curl_multi_init();
        transfers->hosts = http_hosts_new(loop);
    }
    if (transfers == NULL || transfers->multi == NULL || transfers->hosts == NULL) {
        if (transfers != NULL) {
            (void)curl.curl_multi_cleanup(transfers->multi); /* NULL is refused, no more */
            http_hosts_free(transfers->hosts);
        }
        free(transfers);
        (void)error_set(err, ERROR_MEMORY, "http: out of memory");
        return NULL;
    }
    transfers->loop = loop;
    list_init(&transfers->members);
    http_sockets_init(&transfers->sockets);
    transfers->timer.fire = timer_due;
    /* These options are known to every libcurl that has the functions. */
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers);
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
    (void)curl.curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
    transfers->next = all;
    all = transfers;
    return transfers;
}

struct http_hosts *transfers_hosts(const struct transfers *transfers)
{
    return transfers->hosts;
}

struct http_sockets *transfers_sockets(struct transfers *transfers)
{
    return &transfers->sockets;
}

int transfer_join(struct transfers *transfers, struct transfer *transfer)
{
    transfer->easy = curl.curl_easy_init();
    if (transfer->easy == NULL ||
        curl.curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer) != CURLE_OK)
        return -1;
    transfer->transfers = transfers;
    list_append(&transfers->members, &transfer->link);
    return 0;
}

int transfer_start(struct transfer *transfer)
{
    CURLMcode result = curl.curl_multi_add_handle(transfer->transfers->multi, transfer->easy);
    return result == CURLM_OK ? 0 : -1;
}

void transfer_stop(const struct transfer *transfer)
{
    if (transfer->transfers != NULL) /* harmless for one that was not started */
        (void)curl.curl_multi_remove_handle(transfer->transfers->multi, transfer->easy);
}

void transfer_leave(struct transfer *transfer)
{
    transfer_stop(transfer);
    if (transfer->easy != NULL)
        curl.curl_easy_cleanup(transfer->easy);
    list_remove(&transfer->link);
    transfer->easy = NULL;
    transfer->transfers = NULL;
}

void transfers_close(struct loop *loop)
{
    struct transfers **at = &all;
    while (*at != NULL && (*at)->loop != loop)
        at = &(*at)->next;
    struct transfers *transfers = *at;
    if (transfers == NULL)
        return;
    *at = transfers->next;
    struct list_node *node;
    while ((node = list_first(&transfers->members)) != NULL) {
        struct transfer *transfer = container_of(node, struct transfer, link);
        transfer->closing(transfer);
        transfer_leave(transfer);
    }
    (void)curl.curl_multi_cleanup(transfers->multi); /* sockets are given back by socket_wanted */
    http_hosts_free(transfers->hosts);
    loop_at_cancel(loop, &transfers->timer);
    free(transfers);
}

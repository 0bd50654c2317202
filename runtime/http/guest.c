#include "http/guest.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/container.h"

struct guest {
    struct http_guests *guests;
    struct list_node link; /* unless it is to go */
    struct loop_deadline deadline;
    char host[ADDRESS_TEXT_SIZE];
    bool waits_for_us; /* to make its answer */
    int fd;            /* the library's */
};

/* The library closes it when it reads the end. */
static void dismiss(struct guest *guest)
{
    list_remove(&guest->link);
    (void)shutdown(guest->fd, SHUT_RDWR);
}

static void overdue(struct loop_deadline *deadline)
{
    dismiss(container_of(deadline, struct guest, deadline));
}

static struct guest *guest_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        microhttpd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void allow(struct guest *guest, int64_t ns)
{
    struct loop *loop = guest->guests->loop;
    guest->waits_for_us = ns == TIME_NEVER;
    list_remove(&guest->link);
    list_append(&guest->guests->all, &guest->link);
    loop_at(loop, &guest->deadline, clock_add_ns(loop_now(loop), ns));
}

void http_guest_allow(struct MHD_Connection *connection, int64_t ns)
{
    struct guest *guest = guest_of(connection);
    if (guest != NULL && guest->link.next != NULL)
        allow(guest, ns);
}

/* Those that are there, and who has had his time for longest; of one host, or of all (NULL). */
static unsigned count(struct http_guests *guests, const char *host, struct guest **longest)
{
    unsigned total = 0;
    *longest = NULL;
    list_each(node, &guests->all)
    {
        struct guest *guest = container_of(node, struct guest, link);
        if (host != NULL && strcmp(host, guest->host) != 0)
            continue;
        total++;
        if (*longest == NULL && !guest->waits_for_us)
            *longest = guest;
    }
    return total;
}

static bool make_room(struct http_guests *guests, const char *host)
{
    struct guest *longest;
    if (count(guests, host, &longest) < HTTP_GUESTS_OF_ONE &&
        count(guests, NULL, &longest) < HTTP_GUESTS_MAX)
        return true;
    if (longest != NULL)
        dismiss(longest);
    return longest != NULL;
}

static void set_host(struct guest *guest)
{
    struct address address = {.size = sizeof(address.storage)};
    if (getpeername(guest->fd, address_fill(&address), &address.size) == 0)
        address_text_host(&address, guest->host, sizeof(guest->host));
}

static struct guest *enter(struct http_guests *guests, int fd)
{
    struct guest *guest = calloc(1, sizeof(*guest));
    if (guest == NULL)
        return NULL; /* the library's own limit, of idle time, is left */
    guest->guests = guests;
    guest->fd = fd;
    guest->deadline.fire = overdue;
    set_host(guest);
    if (make_room(guests, guest->host))
        allow(guest, HTTP_REQUEST_NS);
    else
        dismiss(guest);
    return guest;
}

static void leave(struct guest *guest)
{
    if (guest == NULL)
        return;
    list_remove(&guest->link);
    loop_at_cancel(guest->guests->loop, &guest->deadline);
    free(guest);
}

void http_guest_notify(void *context, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        leave(*socket_context);
        *socket_context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        microhttpd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *socket_context = info != NULL ? enter(context, info->connect_fd) : NULL;
}

static bool is_loopback(int fd)
{
    struct address address = {.size = sizeof(address.storage)};
    char host[ADDRESS_TEXT_SIZE];
    if (getsockname(fd, address_fill(&address), &address.size) < 0)
        return true; /* the stricter one */
    address_text_host(&address, host, sizeof(host));
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* Its own name, or an address: a page of a foreign site, whose name was made to mean 127.0.0.1 (DNS
 * rebinding), says the site's name. */
static bool is_own_name(const char *text)
{
    char host[256], own[256];
    size_t length = text[0] == '[' ? strcspn(text + 1, "]") : strcspn(text, ":");
    if (length >= sizeof(host))
        return false;
    memcpy(host, text[0] == '[' ? text + 1 : text, length);
    host[length] = '\0';
    if (address_is_number(host) || strcasecmp(host, "localhost") == 0)
        return true;
    return gethostname(own, sizeof(own)) == 0 && strcasecmp(host, own) == 0;
}

#define ANSWER(status_, text)                                                                      \
    {                                                                                              \
        .status = (status_), .type = "text/plain; charset=utf-8", .body = (text),                  \
        .size = sizeof(text) - 1                                                                   \
    }

const struct http_answer *http_guest_refusal(struct MHD_Connection *connection)
{
    static const struct http_answer two_lengths =
        ANSWER(MHD_HTTP_BAD_REQUEST, "Content-Length or Transfer-Encoding, not both\n");
    static const struct http_answer foreign =
        ANSWER(MHD_HTTP_FORBIDDEN, "on loopback the Host is an address, localhost or this host\n");
    const struct guest *guest = guest_of(connection);
    const char *host = microhttpd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    if (microhttpd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length") !=
            NULL &&
        microhttpd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding") !=
            NULL)
        return &two_lengths;
    if (host != NULL && !is_own_name(host) && (guest == NULL || is_loopback(guest->fd)))
        return &foreign;
    return NULL;
}

/**
 * Who has connected to the HTTP server: how long each may take, and which requests are refused
 * before anybody looks at them.
 */
#ifndef CROWN_HTTP_GUEST_H
#define CROWN_HTTP_GUEST_H

#include "http/microhttpd.h"
#include <stdint.h>

#include "base/list.h"
#include "http/server.h"
#include "loop/loop.h"

/** For a request from its first byte, or from the end of the one before it; and for an answer. */
#define HTTP_REQUEST_NS (10 * NS_PER_S)
#define HTTP_ANSWER_NS (30 * NS_PER_S)

/** At once; where there are more, one makes room. The library may have some more: until it has
 * read the ends of those that made room. */
#define HTTP_GUESTS_MAX 64u
#define HTTP_GUESTS_OF_ONE 32u /* address: the others get their turn */
#define HTTP_GUESTS_LEAVING 32u

/** Those of one server. */
struct http_guests {
    struct loop *loop;
    struct list all; /* in the order in which each was allowed its time */
};

/** For MHD_OPTION_NOTIFY_CONNECTION; `context` is the struct http_guests. Whoever has had his time
 * for longest makes room for one who comes: of the same address, where that has too many. */
void http_guest_notify(void *context, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode what);

/** From now on the connection lives for so long at the most, however busy it is; TIME_NEVER:
 * without end. */
void http_guest_allow(struct MHD_Connection *connection, int64_t ns);

/** @return what a request is refused with, its headers read; NULL: it is fine. */
const struct http_answer *http_guest_refusal(struct MHD_Connection *connection);

#endif

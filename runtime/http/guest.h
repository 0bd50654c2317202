/**
 * Who has connected to the HTTP server: how long each may take, and which requests are refused
 * before anybody looks at them.
 */
#ifndef CROWN_HTTP_GUEST_H
#define CROWN_HTTP_GUEST_H

#include "http/microhttpd.h"
#include <stdint.h>

#include "http/server.h"
#include "loop/loop.h"

/** For a request from its first byte, or from the end of the one before it; and for an answer. */
#define HTTP_REQUEST_NS (10 * NS_PER_S)
#define HTTP_ANSWER_NS (30 * NS_PER_S)

/** For MHD_OPTION_NOTIFY_CONNECTION; `context` is the loop. */
void http_guest_notify(void *context, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode what);

/** From now on the connection lives for so long at the most, however busy it is; TIME_NEVER:
 * without end. */
void http_guest_allow(struct MHD_Connection *connection, int64_t ns);

/** @return what a request is refused with, its headers read; NULL: it is fine. */
const struct http_answer *http_guest_refusal(struct MHD_Connection *connection);

#endif

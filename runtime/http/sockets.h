/**
 * The sockets of libcurl's connections, opened and closed here, so that they can be looked at.
 *
 * HTTP/1.1 has no numbers that tell which answer is to which question: what lies on a connection
 * when a question is about to go out would be taken for its answer.
 */
#ifndef CROWN_HTTP_SOCKETS_H
#define CROWN_HTTP_SOCKETS_H

#include <stdbool.h>

#include "base/list.h"
#include "http/curl.h"

/** Those of one set of connections; it has to outlive them. */
struct http_sockets {
    struct list open;
};

void http_sockets_init(struct http_sockets *sockets);

/** For CURLOPT_OPENSOCKETFUNCTION. @return the socket, which no other program inherits; or
 * CURL_SOCKET_BAD. */
curl_socket_t http_socket_open(struct http_sockets *sockets, const struct curl_sockaddr *to);
/** CURLOPT_CLOSESOCKETFUNCTION; `context` is the struct http_sockets. One that owes an answer, or
 * never gave one, is reset: its server may hang, and would not notice an end. */
int http_socket_close(void *context, curl_socket_t fd);

/** Notes that a request goes out on a connection, or that it was answered.
 * @param here, there its ports. */
void http_sockets_owe(const struct http_sockets *sockets, int here, int there, bool owes);

/**
 * Looks at a used connection right before a request goes out on it, as CURLOPT_PREREQFUNCTION is
 * told of it.
 * @param here, there its ports.
 * @return whether something has come that nobody asked for, or it has ended: it must not be used.
 */
bool http_sockets_unasked(const struct http_sockets *sockets, CURL *easy, int here, int there);

#endif

/**
 * A small HTTP server for metrics and the status page: GET and HEAD only, bounded in connections,
 * in time and in size.
 */
#ifndef CROWN_HTTP_SERVER_H
#define CROWN_HTTP_SERVER_H

#include <stddef.h>

#include "base/error.h"
#include "loop/loop.h"

struct http_server;

/** A request that waits for its answer. */
struct http_exchange;

/** What a request is answered with; all of it is copied. */
struct http_answer {
    unsigned status;
    const char *type; /* Content-Type */
    const char *body;
    size_t size;
};

/**
 * Called for each GET, from the loop. Answer with http_exchange_answer, now or later; the client
 * waits meanwhile.
 * @param path decoded, without the query; valid during the call.
 */
typedef void http_handler(void *context, struct http_exchange *exchange, const char *path);

/** @return an argument of the query, decoded, or NULL; valid until it is answered. */
const char *http_exchange_argument(const struct http_exchange *exchange, const char *name);

/** Answers, once. Not for an exchange of a server that is closed. */
void http_exchange_answer(struct http_exchange *exchange, const struct http_answer *answer);

/**
 * Listens.
 * @param address an IP address, or NULL for 127.0.0.1.
 * @return NULL with `err`.
 */
struct http_server *http_server_open(struct loop *loop, const char *address, unsigned port,
                                     http_handler *handler, void *context, struct crown_error *err);
/** @return the port, also where 0, any, was asked for. */
unsigned http_server_port(const struct http_server *server);
/** Whoever still waits for an answer gets none. */
void http_server_close(struct http_server *server);

#endif

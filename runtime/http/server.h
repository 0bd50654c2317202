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

/** What a request is answered with; the body is copied. */
struct http_answer {
    unsigned status;
    const char *type; /* Content-Type */
    const char *body;
    size_t size;
};

/** Called for each GET. @param path decoded, without the query. @param answer filled in; what it
 * points to must last until the next call. */
typedef void http_handler(void *context, const char *path, struct http_answer *answer);

/**
 * Listens.
 * @param address an IP address, or NULL for 127.0.0.1.
 * @return NULL with `err`.
 */
struct http_server *http_server_open(struct loop *loop, const char *address, unsigned port,
                                     http_handler *handler, void *context, struct crown_error *err);
/** @return the port, also where 0, any, was asked for. */
unsigned http_server_port(const struct http_server *server);
void http_server_close(struct http_server *server);

#endif

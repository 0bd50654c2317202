/**
 * HTTP requests on the loop, by libcurl's multi interface: keep-alive, TLS with verification,
 * proxies from the environment. Redirects are not followed: who asks a store wants that store.
 */
#ifndef CROWN_HTTP_REQUEST_H
#define CROWN_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "loop/op.h"

struct http_request;

/** What to ask. Strings are copied. NULL: not given. */
struct http_options {
    const char *url; /* http or https; may hold user:password@ */
    const char *method;
    const char *const *headers; /* "Name: value", NULL-terminated */
    const char *body;
    size_t body_size;
    const char *ca, *cert, *key;                /* files */
    const char *ca_data, *cert_data, *key_data; /* PEM, in place of the files */
    bool insecure;                              /* no verification */
    int64_t timeout_ns;                         /* of the whole; TIME_NEVER for a stream */
    int64_t silence_ns; /* a peer that acknowledges nothing for so long is gone */
    size_t most;        /* bytes of the answer's body; more is an error */
    bool stream;        /* the op completes whenever there is a line, or the end */
};

/** @return NULL with `err`; else its op completes when it is over (or has a line, for a stream). */
struct http_request *http_request_start(struct loop *loop, const struct http_options *options,
                                        struct crown_error *err);
struct op *http_request_op(struct http_request *request);

bool http_request_over(const struct http_request *request);
/** @return what went wrong, or an error with code ERROR_NONE; known when it is over. */
const struct crown_error *http_request_error(const struct http_request *request);
/** @return the status; 0 before it is known. */
int http_request_status(const struct http_request *request);
/** The header lines, and the body (for a stream: what was not taken yet). */
const char *http_request_headers(const struct http_request *request, size_t *size);
const char *http_request_body(const struct http_request *request, size_t *size);
/** For a stream: the next line without its end, or NULL; valid until the next call. */
const char *http_request_line(struct http_request *request, size_t *size);

/** Ends it, over or not: whoever waits for it is told that it is closed. */
void http_request_close(struct http_request *request);
/** Frees it; nobody may wait for it any more. */
void http_request_free(struct http_request *request);

/** Lets go of the connections that are kept alive. For the end of the loop. */
void http_requests_close(struct loop *loop);

#endif

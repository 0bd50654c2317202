/**
 * Where the hosts of HTTP requests are. libcurl would look names up on a thread, and wait for that
 * thread on the loop as soon as a request is given up: it is handed addresses instead, by
 * CURLOPT_RESOLVE, for every name that it may ask for. What was found is kept for a while, and used
 * for longer when no name server answers (RFC 8767): a partition mostly takes the name servers with
 * it, and the store may still be where it was.
 */
#ifndef CROWN_HTTP_HOSTS_H
#define CROWN_HTTP_HOSTS_H

#include <stdbool.h>

#include "base/error.h"
#include "http/curl.h"
#include "loop/loop.h"

struct http_hosts;
struct http_lookup;

/** All that is needed of a loop's names. @return NULL when memory is out. */
struct http_hosts *http_hosts_new(struct loop *loop);
/** No look-up may be under way. NULL is fine. */
void http_hosts_free(struct http_hosts *hosts);

/** Called once, from the loop, never from within http_lookup_start. `err` is ERROR_NONE, or says
 * which name was not found; not where a proxy might do without it. */
typedef void http_looked_up(void *context, const struct crown_error *err);

/**
 * Looks up the URL's host, and the proxies' that the environment names.
 * @param url read by libcurl's own rules.
 * @return for http_lookup_free; NULL with `err`: ERROR_USAGE for a URL that is none.
 */
struct http_lookup *http_lookup_start(struct http_hosts *hosts, const char *url,
                                      http_looked_up *done, void *context, struct crown_error *err);
/** @return which name was not found, or ERROR_NONE: why a connection was not made, if none was. */
const struct crown_error *http_lookup_error(const struct http_lookup *lookup);
/** @return the entries for CURLOPT_RESOLVE, valid until the look-up is freed; NULL when there is
 * nothing that libcurl would have to look up, or memory is out. */
struct curl_slist *http_lookup_entries(struct http_lookup *lookup);
/** What was found could not be connected to: the next request asks the name servers again. */
void http_lookup_blame(const struct http_lookup *lookup);
/** Under way or not. NULL is fine. */
void http_lookup_free(struct http_lookup *lookup);

#endif

/**
 * Whom a request believes, and what it shows of itself.
 */
#ifndef CROWN_HTTP_SECURITY_H
#define CROWN_HTTP_SECURITY_H

#include "http/curl.h"
#include "http/request.h"

/** Sets certificates, and which protocols are spoken. @return what libcurl has refused, or
 * CURLE_OK. */
CURLcode http_secure(CURL *easy, const struct http_options *options);

#endif

/**
 * libcurl, loaded at the first request (base/library.h says why).
 */
#ifndef CROWN_HTTP_CURL_H
#define CROWN_HTTP_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdbool.h>

#include "base/error.h"

#define CURL_FUNCTIONS(X)                                                                          \
    X(curl_easy_cleanup)                                                                           \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_init)                                                                              \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_strerror)                                                                          \
    X(curl_free)                                                                                   \
    X(curl_global_init)                                                                            \
    X(curl_multi_add_handle)                                                                       \
    X(curl_multi_assign)                                                                           \
    X(curl_multi_cleanup)                                                                          \
    X(curl_multi_info_read)                                                                        \
    X(curl_multi_init)                                                                             \
    X(curl_multi_remove_handle)                                                                    \
    X(curl_multi_setopt)                                                                           \
    X(curl_multi_socket_action)                                                                    \
    X(curl_slist_append)                                                                           \
    X(curl_slist_free_all)                                                                         \
    X(curl_url)                                                                                    \
    X(curl_url_cleanup)                                                                            \
    X(curl_url_get)                                                                                \
    X(curl_url_set)                                                                                \
    X(curl_url_strerror)                                                                           \
    X(curl_version)

/** The functions, by their own names: `curl.curl_easy_init()`. All NULL before curl_load. */
struct curl {
#define CURL_FIELD(name) __typeof__(name) *name;
    CURL_FUNCTIONS(CURL_FIELD)
#undef CURL_FIELD
};
extern struct curl curl;

/** Loads the library, once. @return 0, or -1 with ERROR_USAGE. */
int curl_load(struct crown_error *err);

/** @return whether it encrypts by the OpenSSL that net/openssl.h loads. */
bool curl_has_openssl(void);

#endif

#include "http/curl.h"

#include <stddef.h>
#include <string.h>

#include "base/library.h"
#include "net/tls.h"

struct curl curl;

int curl_load(struct crown_error *err)
{
    static const struct library_symbol symbols[] = {
#define CURL_ROW(name) {#name, offsetof(struct curl, name)},
        CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
    };
    struct crown_error why;
    if (curl.curl_easy_init != NULL)
        return 0;
    tls_outlast_exit();
    if (library_load("libcurl.so.4", "install libcurl4", symbols,
                     sizeof(symbols) / sizeof(symbols[0]), &curl, &why) < 0)
        return error_set(err, ERROR_USAGE, "http: %s", why.message);
    if (curl.curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        return error_set(err, ERROR_SYSTEM, "http: libcurl could not be set up");
    return 0;
}

bool curl_has_openssl(void)
{
    return strstr(curl.curl_version(), " OpenSSL/3") != NULL; /* in brackets: is not in use */
}

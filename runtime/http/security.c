#include "http/security.h"

#include <string.h>
#include <unistd.h>

#include "net/portion.h"

#define SYSTEM_CERTIFICATES_S 3600L /* for which they are kept */

#define SET(option, value)                                                                         \
    (result = result == CURLE_OK ? curl.curl_easy_setopt(easy, option, value) : result)

/* Where libcurl has a directory of certificates it reads all of the system's anew for each
 * connection, some 50 ms, and takes them besides those that the user names. Its file holds the
 * same, and is kept. */
static CURLcode set_authorities(CURL *easy, const char *ca, bool named)
{
    CURLcode result = CURLE_OK;
    const char *file = NULL;
    (void)curl.curl_easy_getinfo(easy, CURLINFO_CAINFO, &file); /* NULL: there is none */
    if (ca != NULL)
        SET(CURLOPT_CAINFO, ca);
    if (named || (file != NULL && access(file, R_OK) == 0))
        SET(CURLOPT_CAPATH, NULL);
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_CA_CACHE_TIMEOUT, named ? 0L : SYSTEM_CERTIFICATES_S);
#endif
    return result;
}

static CURLcode set_pem(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = {.flags = CURL_BLOB_COPY};
    if (pem == NULL)
        return CURLE_OK;
    blob.len = strlen(pem);
    memcpy(&blob.data, &pem, sizeof(pem)); /* which curl only reads */
    return curl.curl_easy_setopt(easy, option, &blob);
}

static CURLcode set_data(CURL *easy, const struct http_options *options)
{
    CURLcode result = set_pem(easy, CURLOPT_CAINFO_BLOB, options->ca_data);
    if (result == CURLE_OK)
        result = set_pem(easy, CURLOPT_SSLCERT_BLOB, options->cert_data);
    if (result == CURLE_OK)
        result = set_pem(easy, CURLOPT_SSLKEY_BLOB, options->key_data);
    return result;
}

static CURLcode tls_set_up(CURL *easy, void *context, void *unused)
{
    (void)easy;
    (void)unused;
    portion_bound_context(context);
    return CURLE_OK;
}

CURLcode http_secure(CURL *easy, const struct http_options *options)
{
    CURLcode result =
        set_authorities(easy, options->ca, options->ca != NULL || options->ca_data != NULL);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_SSL_VERIFYPEER, options->insecure ? 0L : 1L);
    SET(CURLOPT_SSL_VERIFYHOST, options->insecure ? 0L : 2L);
    if (curl_has_openssl())
        SET(CURLOPT_SSL_CTX_FUNCTION, tls_set_up);
    if (options->cert != NULL)
        SET(CURLOPT_SSLCERT, options->cert);
    if (options->key != NULL)
        SET(CURLOPT_SSLKEY, options->key);
    return result == CURLE_OK ? set_data(easy, options) : result;
}

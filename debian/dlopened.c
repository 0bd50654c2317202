/* What crown-lua opens by name when it is needed, as a library that asks for it when it is linked:
 * so the package depends on the right packages and versions of them, on every release of Debian.
 * Not installed. */
#include "http/curl.h"
#include "http/microhttpd.h"
#include "net/openssl.h"
#include "postgres/libpq.h"

#define POINTER(name) (void *)name,
void *const dlopened[];
void *const dlopened[] = {LIBPQ_FUNCTIONS(POINTER) CURL_FUNCTIONS(POINTER)
                              MICROHTTPD_FUNCTIONS(POINTER) OPENSSL_FUNCTIONS(POINTER)};

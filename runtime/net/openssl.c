#include "net/openssl.h"

#include <stddef.h>

#include "base/library.h"

struct openssl openssl;

int openssl_load(struct crown_error *err)
{
    static const struct library_symbol symbols[] = {
#define OPENSSL_ROW(name) {#name, offsetof(struct openssl, name)},
        OPENSSL_FUNCTIONS(OPENSSL_ROW)
#undef OPENSSL_ROW
    };
    struct crown_error why;
    if (openssl.SSL_new != NULL)
        return 0;
    /* It brings libcrypto along, whose functions are found by it, too. */
    if (library_load("libssl.so.3", "install libssl3", symbols,
                     sizeof(symbols) / sizeof(symbols[0]), &openssl, &why) < 0)
        return error_set(err, ERROR_TLS, "tls: %s", why.message);
    /* What fails here, fails at its use. */
    (void)openssl.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    return 0;
}

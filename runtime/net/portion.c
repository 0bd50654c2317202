#include "net/portion.h"

#include "net/openssl.h"

#define PORTION 32768u /* bytes: two records; messages of four bytes take some ms */

static size_t left;

/* OpenSSL calls it before and after each operation; what it returns is the operation's result. */
static long look(BIO *bio, int operation, const char *bytes, size_t size, int argi, long argl,
                 int result, size_t *processed)
{
    (void)bytes;
    (void)argi;
    (void)argl;
    (void)processed;
    if (operation != BIO_CB_READ)
        return result;
    if (left == 0) {
        openssl.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    left -= size < left ? size : left;
    return result;
}

void portion_bound(const struct ssl_st *ssl)
{
    BIO *bio = ssl != NULL && openssl_load(NULL) == 0 ? openssl.SSL_get_rbio(ssl) : NULL;
    if (bio != NULL)
        openssl.BIO_set_callback_ex(bio, look);
}

static void happens(const SSL *ssl, int where, int result)
{
    (void)result;
    if ((where & SSL_CB_HANDSHAKE_START) != 0)
        portion_bound(ssl);
}

void portion_bound_context(struct ssl_ctx_st *context)
{
    if (openssl_load(NULL) == 0)
        openssl.SSL_CTX_set_info_callback(context, happens);
}

void portion_begin(void)
{
    left = PORTION;
}

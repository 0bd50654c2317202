/**
 * OpenSSL, loaded when something is first encrypted or signed (base/library.h says why).
 */
#ifndef CROWN_NET_OPENSSL_H
#define CROWN_NET_OPENSSL_H

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/error.h"

#define OPENSSL_FUNCTIONS(X)                                                                       \
    X(BIO_set_callback_ex)                                                                         \
    X(BIO_set_flags)                                                                               \
    X(CRYPTO_memcmp)                                                                               \
    X(ERR_clear_error)                                                                             \
    X(ERR_get_error)                                                                               \
    X(ERR_reason_error_string)                                                                     \
    X(EVP_Digest)                                                                                  \
    X(EVP_DigestSign)                                                                              \
    X(EVP_DigestSignInit)                                                                          \
    X(EVP_MD_CTX_free)                                                                             \
    X(EVP_MD_CTX_new)                                                                              \
    X(EVP_PKEY_free)                                                                               \
    X(EVP_PKEY_get_raw_public_key)                                                                 \
    X(EVP_PKEY_new_raw_private_key)                                                                \
    X(EVP_sha1)                                                                                    \
    X(EVP_sha256)                                                                                  \
    X(HMAC)                                                                                        \
    X(OPENSSL_init_crypto)                                                                         \
    X(OpenSSL_version)                                                                             \
    X(RAND_bytes)                                                                                  \
    X(SSL_CTX_ctrl)                                                                                \
    X(SSL_CTX_free)                                                                                \
    X(SSL_CTX_load_verify_file)                                                                    \
    X(SSL_CTX_new)                                                                                 \
    X(SSL_CTX_set1_cert_store)                                                                     \
    X(SSL_CTX_set_info_callback)                                                                   \
    X(SSL_CTX_set_options)                                                                         \
    X(SSL_CTX_set_verify)                                                                          \
    X(SSL_CTX_use_PrivateKey_file)                                                                 \
    X(SSL_CTX_use_certificate_chain_file)                                                          \
    X(SSL_ctrl)                                                                                    \
    X(SSL_do_handshake)                                                                            \
    X(SSL_free)                                                                                    \
    X(SSL_get0_param)                                                                              \
    X(SSL_get_error)                                                                               \
    X(SSL_get_rbio)                                                                                \
    X(SSL_get_verify_result)                                                                       \
    X(SSL_new)                                                                                     \
    X(SSL_pending)                                                                                 \
    X(SSL_read)                                                                                    \
    X(SSL_set_accept_state)                                                                        \
    X(SSL_set_connect_state)                                                                       \
    X(SSL_set_fd)                                                                                  \
    X(SSL_shutdown)                                                                                \
    X(SSL_write)                                                                                   \
    X(TLS_client_method)                                                                           \
    X(TLS_server_method)                                                                           \
    X(X509_STORE_free)                                                                             \
    X(X509_STORE_new)                                                                              \
    X(X509_STORE_set_default_paths)                                                                \
    X(X509_VERIFY_PARAM_set1_host)                                                                 \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                                               \
    X(X509_VERIFY_PARAM_set_hostflags)                                                             \
    X(X509_verify_cert_error_string)

/** The functions, by their own names: `openssl.SSL_new(ctx)`. All NULL before openssl_load. Macros
 * of OpenSSL's headers call functions of the library itself: use the `_ctrl` functions instead. */
struct openssl {
#define OPENSSL_FIELD(name) __typeof__(name) *name;
    OPENSSL_FUNCTIONS(OPENSSL_FIELD)
#undef OPENSSL_FIELD
};
extern struct openssl openssl;

/**
 * Loads the library, once. Call it before another library that uses OpenSSL is loaded: OpenSSL then
 * takes nothing apart at exit(3), where a thread (loop/helper.h) may be in the middle of using it.
 * @return 0, or -1 with ERROR_TLS: it is not installed.
 */
int openssl_load(struct crown_error *err);

#endif

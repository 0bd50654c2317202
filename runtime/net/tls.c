#include "net/tls.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/plain_file.h"
#include "net/openssl.h"
#include "net/portion.h"

#define SYSTEM_CERTIFICATES_NS (3600 * NS_PER_S)

struct tls_context {
    SSL_CTX *ctx;
    bool server, verify;
    char *server_name;
};

const char *tls_library(struct crown_error *err)
{
    return openssl_load(err) == 0 ? openssl.OpenSSL_version(OPENSSL_VERSION_STRING) : NULL;
}

void tls_outlast_exit(void)
{
    (void)openssl_load(NULL); /* not there: then nothing uses it */
}

int tls_error(struct ssl_st *ssl, const char *what, struct crown_error *err)
{
    unsigned long code = openssl.ERR_get_error();
    long verified = ssl != NULL ? openssl.SSL_get_verify_result(ssl) : X509_V_OK;
    const char *reason = code != 0 ? openssl.ERR_reason_error_string(code) : NULL;
    if (ERR_SYSTEM_ERROR(
            code)) /* a file that is not there, for one: OpenSSL 3 has no word for it */
        reason = strerror(ERR_GET_REASON(code));
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        reason = "the other end does not speak TLS: " TLS_IS_IT_ON;
    openssl.ERR_clear_error();
    if (verified != X509_V_OK)
        return error_set(err, ERROR_TLS, "%s: certificate verify failed: %s", what,
                         openssl.X509_verify_cert_error_string(verified));
    return error_set(err, ERROR_TLS, "%s: %s", what,
                     reason != NULL ? reason : "the other side broke off");
}

/* Read once an hour for all connections: some hundred and forty certificates take 50 ms. */
static int trust_system(SSL_CTX *ctx)
{
    static X509_STORE *system;
    static int64_t read_ns;
    int64_t now = clock_boottime_ns();
    if (system == NULL || now - read_ns > SYSTEM_CERTIFICATES_NS) {
        X509_STORE *fresh = openssl.X509_STORE_new();
        if (fresh == NULL || openssl.X509_STORE_set_default_paths(fresh) != 1) {
            openssl.X509_STORE_free(fresh);
            return -1;
        }
        openssl.X509_STORE_free(system);
        system = fresh;
        read_ns = now;
    }
    openssl.SSL_CTX_set1_cert_store(ctx, system);
    return 0;
}

static int load_certificates(SSL_CTX *ctx, const struct tls_options *options,
                             struct crown_error *err)
{
    const char *key = options->key != NULL ? options->key : options->cert;
    if (plain_file_check("tls: the file of authorities", options->ca, err) < 0 ||
        plain_file_check("tls: the certificate", options->cert, err) < 0 ||
        plain_file_check("tls: the key", key, err) < 0)
        return -1;
    if (options->ca != NULL && openssl.SSL_CTX_load_verify_file(ctx, options->ca) != 1)
        return tls_error(NULL, options->ca, err);
    if (options->ca == NULL && !options->server && trust_system(ctx) < 0)
        return tls_error(NULL, "load the system's certificates", err);
    if (options->cert != NULL &&
        openssl.SSL_CTX_use_certificate_chain_file(ctx, options->cert) != 1)
        return tls_error(NULL, options->cert, err);
    if (key == NULL || openssl.SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1)
        return 0;
    if (options->key != NULL)
        return tls_error(NULL, key, err);
    openssl.ERR_clear_error();
    return error_set(err, ERROR_TLS, "%s holds no private key: name its file by key=FILE", key);
}

struct tls_context *tls_context_new(const struct tls_options *options, struct crown_error *err)
{
    if (openssl_load(err) < 0)
        return NULL;
    struct tls_context *context = calloc(1, sizeof(*context));
    if (context == NULL) {
        (void)error_set(err, ERROR_MEMORY, "set up TLS: out of memory");
        return NULL;
    }
    context->server = options->server;
    context->verify = !options->insecure && !options->server;
    context->ctx = openssl.SSL_CTX_new(options->server ? openssl.TLS_server_method()
                                                       : openssl.TLS_client_method());
    if (context->ctx == NULL || openssl.SSL_CTX_ctrl(context->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
                                                     TLS1_2_VERSION, NULL) != 1) {
        (void)tls_error(NULL, "set up TLS", err);
        tls_context_free(context);
        return NULL;
    }
    (void)openssl.SSL_CTX_ctrl(context->ctx, SSL_CTRL_MODE,
                               SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                               NULL);
    (void)openssl.SSL_CTX_set_options(context->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
    portion_bound_context(context->ctx);
    openssl.SSL_CTX_set_verify(context->ctx, context->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                               NULL);
    if (options->server_name != NULL)
        context->server_name = strdup(options->server_name);
    if (load_certificates(context->ctx, options, err) < 0) {
        tls_context_free(context);
        return NULL;
    }
    return context;
}

void tls_context_free(struct tls_context *context)
{
    if (context == NULL)
        return;
    openssl.SSL_CTX_free(context->ctx);
    free(context->server_name);
    free(context);
}

/* OpenSSL copies the name. */
static long set_host_name(SSL *ssl, const char *name)
{
    return openssl.SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                            (void *)name);
}

static int expect(SSL *ssl, const char *name)
{
    X509_VERIFY_PARAM *param = openssl.SSL_get0_param(ssl);
    if (address_is_number(name))
        return openssl.X509_VERIFY_PARAM_set1_ip_asc(param, name);
    openssl.X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return openssl.X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
           set_host_name(ssl, name) == 1;
}

struct ssl_st *tls_start(const struct tls_context *context, int fd, const char *name,
                         struct crown_error *err)
{
    SSL *ssl = openssl.SSL_new(context->ctx);
    const char *expected = context->server_name != NULL ? context->server_name : name;
    if (ssl == NULL || openssl.SSL_set_fd(ssl, fd) != 1 ||
        (!context->server && expected != NULL && expect(ssl, expected) != 1)) {
        (void)tls_error(NULL, "start TLS", err);
        openssl.SSL_free(ssl);
        return NULL;
    }
    if (context->server)
        openssl.SSL_set_accept_state(ssl);
    else
        openssl.SSL_set_connect_state(ssl);
    return ssl;
}

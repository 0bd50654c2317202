/**
 * TLS by OpenSSL: at least 1.2, the certificate and the host's name verified unless the user says
 * otherwise in so many words.
 */
#ifndef CROWN_NET_TLS_H
#define CROWN_NET_TLS_H

#include <stdbool.h>

#include "base/error.h"

/** All strings may be NULL; the caller's. */
struct tls_options {
    bool server;
    const char *ca;          /* a file of certificates to trust instead of the system's */
    const char *cert, *key;  /* files: our own certificate */
    const char *server_name; /* whom to expect; the connection's host by default */
    bool insecure;           /* verify nothing */
};

struct tls_context;
struct ssl_st;

/** Call it before a library is loaded that uses OpenSSL: see openssl_load. */
void tls_outlast_exit(void);

/** @return the version of OpenSSL; NULL with ERROR_TLS where it is not installed. */
const char *tls_library(struct crown_error *err);

/** @return a context for any number of connections, or NULL with ERROR_TLS. */
struct tls_context *tls_context_new(const struct tls_options *options, struct crown_error *err);
void tls_context_free(struct tls_context *context);

/**
 * Starts TLS on a connected socket.
 * @param name whom to expect (a host name or an address); unused for servers.
 * @return OpenSSL's connection, for SSL_free; NULL with ERROR_TLS.
 */
struct ssl_st *tls_start(const struct tls_context *context, int fd, const char *name,
                         struct crown_error *err);

/** What to look at where the other side does not go on with TLS. */
#define TLS_IS_IT_ON "is TLS turned on at the other end?"

/** Fills `err` with what went wrong last on a connection: "certificate verify failed: …". @return
 * -1. */
int tls_error(struct ssl_st *ssl, const char *what, struct crown_error *err);

#endif

/**
 * Ed25519 signatures (RFC 8032), by OpenSSL.
 */
#ifndef CROWN_NET_ED25519_H
#define CROWN_NET_ED25519_H

#include <stddef.h>

#include "base/error.h"

#define ED25519_SECRET_SIZE 32
#define ED25519_PUBLIC_SIZE 32
#define ED25519_SIGNATURE_SIZE 64

/** @return 0, or -1 with `err`. */
int ed25519_public(const unsigned char *secret, unsigned char *public_key, struct crown_error *err);
int ed25519_sign(const unsigned char *secret, const char *bytes, size_t size,
                 unsigned char *signature, struct crown_error *err);

#endif

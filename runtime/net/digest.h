/**
 * Digests that logins of MySQL are made of, by OpenSSL.
 */
#ifndef CROWN_NET_DIGEST_H
#define CROWN_NET_DIGEST_H

#include <stddef.h>

#include "base/error.h"

#define DIGEST_SHA1_SIZE 20
#define DIGEST_SHA256_SIZE 32

/** Writes DIGEST_SHA1_SIZE bytes. @return 0, or -1 with `err`. */
int digest_sha1(const char *bytes, size_t size, unsigned char *digest, struct crown_error *err);
/** Writes DIGEST_SHA256_SIZE bytes. @return 0, or -1 with `err`. */
int digest_sha256(const char *bytes, size_t size, unsigned char *digest, struct crown_error *err);

#endif

/**
 * What a shared secret proves: HMAC-SHA-256 (RFC 2104), random bytes and a comparison that takes
 * the same time wherever two texts differ, all by OpenSSL.
 */
#ifndef CROWN_NET_HMAC_H
#define CROWN_NET_HMAC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define HMAC_SHA256_SIZE 32

/** Writes HMAC_SHA256_SIZE bytes. @return 0, or -1 with `err`. */
int hmac_sha256(const char *key, size_t key_size, const char *bytes, size_t size,
                unsigned char *mac, struct crown_error *err);
/** Writes `size` bytes that nobody can guess. @return 0, or -1 with `err`. */
int hmac_random(unsigned char *bytes, size_t size, struct crown_error *err);
/** @return whether two texts of one size are equal; false where that cannot be said. */
bool hmac_equal(const char *one, const char *other, size_t size);

#endif

#include "net/hmac.h"

#include "net/openssl.h"

int hmac_sha256(const char *key, size_t key_size, const char *bytes, size_t size,
                unsigned char *mac, struct crown_error *err)
{
    if (openssl_load(err) < 0)
        return -1;
    unsigned length = HMAC_SHA256_SIZE;
    if (openssl.HMAC(openssl.EVP_sha256(), key, (int)key_size, (const unsigned char *)bytes, size,
                     mac, &length) == NULL)
        return error_set(err, ERROR_SYSTEM, "hmac: could not be computed");
    return 0;
}

int hmac_random(unsigned char *bytes, size_t size, struct crown_error *err)
{
    if (openssl_load(err) < 0)
        return -1;
    if (openssl.RAND_bytes(bytes, (int)size) != 1)
        return error_set(err, ERROR_SYSTEM, "no random bytes are to be had");
    return 0;
}

bool hmac_equal(const char *one, const char *other, size_t size)
{
    return openssl_load(NULL) == 0 && openssl.CRYPTO_memcmp(one, other, size) == 0;
}

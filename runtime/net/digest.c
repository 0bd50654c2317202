#include "net/digest.h"

#include "net/openssl.h"

static int compute(const EVP_MD *kind, const char *bytes, size_t size, unsigned char *digest,
                   struct crown_error *err)
{
    if (openssl.EVP_Digest(bytes, size, digest, NULL, kind, NULL) != 1)
        return error_set(err, ERROR_SYSTEM, "digest: could not be computed");
    return 0;
}

int digest_sha1(const char *bytes, size_t size, unsigned char *digest, struct crown_error *err)
{
    return openssl_load(err) < 0 ? -1 : compute(openssl.EVP_sha1(), bytes, size, digest, err);
}

int digest_sha256(const char *bytes, size_t size, unsigned char *digest, struct crown_error *err)
{
    return openssl_load(err) < 0 ? -1 : compute(openssl.EVP_sha256(), bytes, size, digest, err);
}

#include "net/ed25519.h"

#include "net/openssl.h"

static EVP_PKEY *make_key(const unsigned char *secret, struct crown_error *err)
{
    if (openssl_load(err) < 0)
        return NULL;
    EVP_PKEY *key =
        openssl.EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, ED25519_SECRET_SIZE);
    if (key == NULL)
        (void)error_set(err, ERROR_SYSTEM, "ed25519: not a key");
    return key;
}

int ed25519_public(const unsigned char *secret, unsigned char *public_key, struct crown_error *err)
{
    size_t size = ED25519_PUBLIC_SIZE;
    EVP_PKEY *key = make_key(secret, err);
    if (key == NULL)
        return -1;
    int made = openssl.EVP_PKEY_get_raw_public_key(key, public_key, &size);
    openssl.EVP_PKEY_free(key);
    return made == 1 ? 0 : error_set(err, ERROR_SYSTEM, "ed25519: no public key");
}

int ed25519_sign(const unsigned char *secret, const char *bytes, size_t size,
                 unsigned char *signature, struct crown_error *err)
{
    size_t length = ED25519_SIGNATURE_SIZE;
    EVP_PKEY *key = make_key(secret, err);
    if (key == NULL)
        return -1;
    EVP_MD_CTX *context = openssl.EVP_MD_CTX_new();
    int made = 0;
    if (context != NULL && openssl.EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1)
        made =
            openssl.EVP_DigestSign(context, signature, &length, (const unsigned char *)bytes, size);
    openssl.EVP_MD_CTX_free(context);
    openssl.EVP_PKEY_free(key);
    return made == 1 ? 0 : error_set(err, ERROR_SYSTEM, "ed25519: could not sign");
}

/* crown.core.crypto: ed25519_public(secret) -> 32 bytes; ed25519_sign(secret, bytes) -> 64 bytes;
 * hmac_sha256(key, bytes) -> 32 bytes; sha1(bytes) -> 20 bytes; sha256(bytes) -> 32 bytes;
 * digest(bytes) -> 8 hexadecimal digits that tell names apart, and hide nothing; random(size) ->
 * bytes; equal(a, b) -> whether they are, in a time that does not tell where they differ. What
 * needs OpenSSL (hmac_sha256, sha…, ed25519_…) raises an error where that is not to be had: nobody
 * who asks can do without. */
#include <lauxlib.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hash.h"
#include "bind/bind.h"
#include "net/digest.h"
#include "net/ed25519.h"
#include "net/hmac.h"

#define RANDOM_MOST 1024

static int raise_error(lua_State *L, const struct crown_error *err)
{
    lua_pushstring(L, err->message);
    return lua_error(L);
}

static const unsigned char *check_secret(lua_State *L)
{
    size_t size;
    const char *secret = luaL_checklstring(L, 1, &size);
    luaL_argcheck(L, size == ED25519_SECRET_SIZE, 1, "32 bytes expected");
    return (const unsigned char *)secret;
}

static int crypto_public(lua_State *L)
{
    unsigned char public_key[ED25519_PUBLIC_SIZE];
    struct crown_error err;
    if (ed25519_public(check_secret(L), public_key, &err) < 0)
        return raise_error(L, &err);
    lua_pushlstring(L, (const char *)public_key, sizeof(public_key));
    return 1;
}

static int crypto_sign(lua_State *L)
{
    unsigned char signature[ED25519_SIGNATURE_SIZE];
    struct crown_error err;
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    if (ed25519_sign(check_secret(L), bytes, size, signature, &err) < 0)
        return raise_error(L, &err);
    lua_pushlstring(L, (const char *)signature, sizeof(signature));
    return 1;
}

/* Folded to half its length. */
static int crypto_digest(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    uint64_t value = hash_bytes(bytes, size);
    char digits[9];
    (void)snprintf(digits, sizeof(digits), "%08x", (unsigned)((value ^ value >> 32) & 0xffffffff));
    lua_pushlstring(L, digits, sizeof(digits) - 1);
    return 1;
}

static int crypto_hmac_sha256(lua_State *L)
{
    unsigned char mac[HMAC_SHA256_SIZE];
    struct crown_error err;
    size_t key_size;
    size_t size;
    const char *key = luaL_checklstring(L, 1, &key_size);
    const char *bytes = luaL_checklstring(L, 2, &size);
    if (hmac_sha256(key, key_size, bytes, size, mac, &err) < 0)
        return raise_error(L, &err);
    lua_pushlstring(L, (const char *)mac, sizeof(mac));
    return 1;
}

static int crypto_sha1(lua_State *L)
{
    unsigned char digest[DIGEST_SHA1_SIZE];
    struct crown_error err;
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    if (digest_sha1(bytes, size, digest, &err) < 0)
        return raise_error(L, &err);
    lua_pushlstring(L, (const char *)digest, sizeof(digest));
    return 1;
}

static int crypto_sha256(lua_State *L)
{
    unsigned char digest[DIGEST_SHA256_SIZE];
    struct crown_error err;
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    if (digest_sha256(bytes, size, digest, &err) < 0)
        return raise_error(L, &err);
    lua_pushlstring(L, (const char *)digest, sizeof(digest));
    return 1;
}

static int crypto_random(lua_State *L)
{
    unsigned char bytes[RANDOM_MOST];
    struct crown_error err;
    int size = luaL_checkint(L, 1);
    luaL_argcheck(L, size > 0 && size <= RANDOM_MOST, 1, "1 to 1024 bytes");
    if (hmac_random(bytes, (size_t)size, &err) < 0)
        return raise_error(L, &err);
    lua_pushlstring(L, (const char *)bytes, (size_t)size);
    return 1;
}

static int crypto_equal(lua_State *L)
{
    size_t size;
    size_t other_size;
    const char *one = luaL_checklstring(L, 1, &size);
    const char *other = luaL_checklstring(L, 2, &other_size);
    lua_pushboolean(L, size == other_size && hmac_equal(one, other, size));
    return 1;
}

static const luaL_Reg functions[] = {
    {"ed25519_public", crypto_public},
    {"ed25519_sign", crypto_sign},
    {"hmac_sha256", crypto_hmac_sha256},
    {"sha1", crypto_sha1},
    {"sha256", crypto_sha256},
    {"digest", crypto_digest},
    {"random", crypto_random},
    {"equal", crypto_equal},
    {NULL, NULL},
};

int bind_open_crypto(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

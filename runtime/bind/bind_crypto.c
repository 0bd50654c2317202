/* crown.core.crypto: ed25519_public(secret) -> 32 bytes; ed25519_sign(secret, bytes) -> 64 bytes.
 */
#include <lauxlib.h>

#include "bind/bind.h"
#include "net/ed25519.h"

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
        return push_error(L, &err);
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
        return push_error(L, &err);
    lua_pushlstring(L, (const char *)signature, sizeof(signature));
    return 1;
}

static const luaL_Reg functions[] = {
    {"ed25519_public", crypto_public},
    {"ed25519_sign", crypto_sign},
    {NULL, NULL},
};

int bind_open_crypto(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

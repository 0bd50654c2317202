/* crown.core.build: what this program is made of. libraries() -> { { "name", "version" or nil, "why
 * it is not to be had" } }; kernel() -> what the kernel gives, as booleans by name;
 * pid_namespaces() -> the same of them, which takes a fork; compiler. */
#include "bind/bind.h"

#include <stdio.h>

#include "bind/redis_codec.h"
#include "host/host.h"
#include "http/curl.h"
#include "http/microhttpd.h"
#include "loop/loop.h"
#include "net/resolve.h"
#include "net/tls.h"
#include "postgres/libpq.h"
#include "process/features.h"

#ifdef __clang__ /* whose __clang_version__ ends with a space */
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define COMPILER                                                                                   \
    "clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(__clang_patchlevel__)
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Appends { name, version } or, where it is NULL, { name, nil, why } to the table on the stack. */
static void push_library(lua_State *L, const char *name, const char *version, const char *why)
{
    lua_createtable(L, 3, 0);
    lua_pushstring(L, name);
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, version);
    lua_rawseti(L, -2, 2);
    lua_pushstring(L, why);
    lua_rawseti(L, -2, 3);
    lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
}

static void push_linked(lua_State *L)
{
    char text[48];
    int major, minor;
    loop_library(&major, &minor);
    (void)snprintf(text, sizeof(text), "%d.%d", major, minor);
    push_library(L, "libev", text, NULL);
    push_library(L, "c-ares", resolve_library(), NULL);
    redis_library(text, sizeof(text));
    push_library(L, "hiredis", text, NULL);
}

/* Those that are looked for when they are needed: base/library.h. */
static void push_loaded(lua_State *L)
{
    struct crown_error err;
    char text[48];
    const char *tls = tls_library(&err);
    push_library(L, "OpenSSL", tls, tls == NULL ? err.message : NULL);
    if (libpq_load(&err) < 0) {
        push_library(L, "libpq", NULL, err.message);
    } else {
        int version = libpq.PQlibVersion();
        (void)snprintf(text, sizeof(text), "%d.%d", version / 10000, version % 10000);
        push_library(L, "libpq", text, NULL);
    }
    if (curl_load(&err) < 0)
        push_library(L, "libcurl", NULL, err.message);
    else
        push_library(L, "libcurl", curl.curl_version(), NULL);
    if (microhttpd_load(&err) < 0)
        push_library(L, "libmicrohttpd", NULL, err.message);
    else
        push_library(L, "libmicrohttpd", microhttpd.MHD_get_version(), NULL);
}

static int build_libraries(lua_State *L)
{
    lua_newtable(L);
    push_linked(L);
    push_loaded(L);
    return 1;
}

static int build_kernel(lua_State *L)
{
    lua_newtable(L);
    lua_pushboolean(L, check_host(L)->real_time);
    lua_setfield(L, -2, "real_time");
    lua_pushboolean(L, features_locked_memory());
    lua_setfield(L, -2, "locked_memory");
    lua_pushboolean(L, features_pidfd());
    lua_setfield(L, -2, "pidfd");
    return 1;
}

static int build_pid_namespaces(lua_State *L)
{
    lua_pushboolean(L, features_pid_namespaces());
    return 1;
}

static const luaL_Reg functions[] = {
    {"libraries", build_libraries},
    {"kernel", build_kernel},
    {"pid_namespaces", build_pid_namespaces},
    {NULL, NULL},
};

int bind_open_build(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    lua_pushliteral(L, COMPILER);
    lua_setfield(L, -2, "compiler");
    return 1;
}

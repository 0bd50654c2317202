/* crown.core.resp: what Redis speaks, by hiredis's codec. format{ words } -> bytes; reader() -> a
 * reader: reader:feed(bytes); reader:next() -> "value", value | "error", text | nothing yet; or
 * nil, message for what is no RESP, or too big. Null is nil, at the end of an array too: its length
 * is in `n`.
 */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "bind/bind.h"
#include "bind/redis_codec.h"

#define READER_TYPE "crown.resp_reader"
#define WAITING_MAX (16u << 20) /* bytes of one reply */
#define WORDS_MAX 4096

struct reader {
    redisReader *reader;
    size_t waiting;  /* bytes fed since the last complete reply */
    size_t elements; /* of the reply that is being read */
};

static int resp_format(lua_State *L)
{
    const char *words[WORDS_MAX];
    size_t sizes[WORDS_MAX];
    luaL_checktype(L, 1, LUA_TTABLE);
    int count = (int)lua_objlen(L, 1);
    luaL_argcheck(L, count > 0 && count <= WORDS_MAX, 1, "1 to 4096 words expected");
    luaL_checkstack(L, count, "too many words");
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        words[i] = lua_tolstring(
            L, -1, &sizes[i]); /* a number becomes text on the stack, not in the table */
        luaL_argcheck(L, words[i] != NULL, 1, "strings and numbers expected");
    }
    char *bytes = NULL;
    long long size = redisFormatCommandArgv(&bytes, count, words, sizes);
    if (size < 0)
        return luaL_error(L, "out of memory");
    lua_pushlstring(L, bytes, (size_t)size);
    redisFreeCommand(bytes);
    return 1;
}

static int reader_new(lua_State *L)
{
    struct reader *reader = lua_newuserdata(L, sizeof(*reader));
    *reader = (struct reader){.reader = NULL};
    luaL_getmetatable(L, READER_TYPE);
    lua_setmetatable(L, -2);
    reader->reader = redis_reader_new(&reader->elements);
    return reader->reader != NULL ? 1 : luaL_error(L, "out of memory");
}

static void push_reply(lua_State *L, const redisReply *reply)
{
    luaL_checkstack(L, 3, "a reply that is too deep");
    switch (redis_kind_of(reply)) {
    case REDIS_NUMBER:
        lua_pushnumber(L, (lua_Number)reply->integer);
        break;
    case REDIS_LIST:
        lua_createtable(L, (int)reply->elements, 1);
        for (size_t i = 0; i < reply->elements; i++) {
            push_reply(L, reply->element[i]);
            lua_rawseti(L, -2, (int)i + 1);
        }
        lua_pushnumber(L, (lua_Number)reply->elements);
        lua_setfield(L, -2, "n");
        break;
    case REDIS_NOTHING:
        lua_pushnil(L);
        break;
    case REDIS_FAILURE:
    case REDIS_TEXT:
        lua_pushlstring(L, reply->str, reply->len);
        break;
    }
}

static struct reader *check_reader(lua_State *L)
{
    return luaL_checkudata(L, 1, READER_TYPE);
}

static int reader_feed(lua_State *L)
{
    struct reader *reader = check_reader(L);
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    reader->waiting += size;
    (void)redisReaderFeed(reader->reader, bytes,
                          size); /* the next call of next says what went wrong */
    return 0;
}

static int reader_next(lua_State *L)
{
    struct reader *reader = check_reader(L);
    void *found = NULL;
    if (redisReaderGetReply(reader->reader, &found) != REDIS_OK) {
        lua_pushnil(L);
        if (reader->reader->err == REDIS_ERR_OOM)
            lua_pushliteral(L, "a reply that is too big");
        else
            lua_pushfstring(L, "not a reply of Redis: %s", reader->reader->errstr);
        return 2;
    }
    if (found == NULL) {
        if (reader->waiting <= WAITING_MAX)
            return 0;
        lua_pushnil(L);
        lua_pushliteral(L, "a reply of more than 16 MiB");
        return 2;
    }
    redisReply *reply = found;
    reader->waiting = reader->reader->len - reader->reader->pos;
    reader->elements = 0;
    lua_pushstring(L, redis_kind_of(reply) == REDIS_FAILURE ? "error" : "value");
    push_reply(L, reply);
    freeReplyObject(reply);
    return 2;
}

/* reader:is_within() -> whether a part of a reply has come. */
static int reader_is_within(lua_State *L)
{
    lua_pushboolean(L, check_reader(L)->waiting > 0);
    return 1;
}

static int reader_gc(lua_State *L)
{
    struct reader *reader = check_reader(L);
    if (reader->reader != NULL)
        redisReaderFree(reader->reader);
    reader->reader = NULL;
    return 0;
}

int bind_open_resp(lua_State *L)
{
    static const luaL_Reg methods[] = {{"feed", reader_feed},
                                       {"next", reader_next},
                                       {"is_within", reader_is_within},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"format", resp_format}, {"reader", reader_new}, {NULL, NULL}};
    bind_make_type(L, READER_TYPE, methods, reader_gc);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

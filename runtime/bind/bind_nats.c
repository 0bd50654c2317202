/* crown.core.nats: what a NATS server says. reader() -> a reader: reader:feed(bytes);
 * reader:next() -> "line", text | "message", sid | nothing yet; or nil, message for what is
 * nothing that NATS says, or too big.
 *
 * Until the next call of next, of the message that it told of: reader:subject([from]), reply(),
 * data(): texts, subject without so many bytes in front; reader:header(name) and reader:status():
 * texts or nil; reader:headers() -> a table by names in small letters; reader:place(from) -> the
 * number that the subject is behind so many bytes, or nil; reader:acknowledged() -> the sequence of
 * a publication that JetStream acknowledges, nil for any other answer; reader:delivered() -> the
 * sequence, the time in nanoseconds as text and how many are still to come, of what a consumer
 * delivers; nil for what is none. What is not asked for is not made: thousands of messages leave
 * nothing to the collector. */
#include <ctype.h>
#include <lauxlib.h>

#include "base/buffer.h"
#include "bind/bind.h"
#include "bind/nats_codec.h"

#define READER_TYPE "crown.nats_reader"
#define NAME_MOST 128    /* bytes of a header's name */
#define ROOM_KEPT 65536u /* bytes, for what comes next */

struct reader {
    struct buffer buffer;
    size_t taken; /* of it, by what was told */
    struct nats_heard heard;
};

static int reader_new(lua_State *L)
{
    struct reader *reader = lua_newuserdata(L, sizeof(*reader));
    *reader = (struct reader){.taken = 0};
    luaL_getmetatable(L, READER_TYPE);
    lua_setmetatable(L, -2);
    return 1;
}

static struct reader *check_reader(lua_State *L)
{
    return luaL_checkudata(L, 1, READER_TYPE);
}

static int push_text(lua_State *L, const struct nats_text *text)
{
    if (text->bytes != NULL)
        lua_pushlstring(L, text->bytes, text->size);
    else
        lua_pushnil(L);
    return 1;
}

/* What was told of lies in the buffer. */
static void forget_heard(struct reader *reader)
{
    reader->heard = (struct nats_heard){.message = false};
}

static int reader_feed(lua_State *L)
{
    struct reader *reader = check_reader(L);
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    forget_heard(reader);
    buffer_drop(&reader->buffer, reader->taken);
    reader->taken = 0;
    if (reader->buffer.size == 0 && reader->buffer.room > ROOM_KEPT)
        buffer_free(&reader->buffer);
    return buffer_append(&reader->buffer, bytes, size) == 0 ? 0 : luaL_error(L, "out of memory");
}

static int refuse(lua_State *L, enum nats_progress progress)
{
    lua_pushnil(L);
    if (progress == NATS_LONG)
        lua_pushfstring(L, "a line of more than %d bytes", (int)NATS_MOST);
    else
        lua_pushliteral(L, "not a message of NATS");
    return 2;
}

static int reader_next(lua_State *L)
{
    struct reader *reader = check_reader(L);
    const struct buffer *buffer = &reader->buffer;
    forget_heard(reader);
    if (reader->taken == buffer->size)
        return 0;
    enum nats_progress progress =
        nats_parse(buffer->bytes + reader->taken, buffer->size - reader->taken, &reader->heard);
    if (progress != NATS_HEARD) {
        forget_heard(reader);
        return progress == NATS_MORE ? 0 : refuse(L, progress);
    }
    reader->taken += reader->heard.size;
    lua_pushstring(L, reader->heard.message ? "message" : "line");
    (void)push_text(L, reader->heard.message ? &reader->heard.sid : &reader->heard.line);
    return 2;
}

static struct nats_text subject_behind(lua_State *L, const struct reader *reader)
{
    struct nats_text subject = reader->heard.subject;
    lua_Number from = luaL_optnumber(L, 2, 0);
    size_t size = from < (lua_Number)subject.size ? (size_t)from : subject.size;
    if (subject.bytes != NULL) {
        subject.bytes += size;
        subject.size -= size;
    }
    return subject;
}

static int reader_subject(lua_State *L)
{
    struct nats_text subject = subject_behind(L, check_reader(L));
    return push_text(L, &subject);
}

static int push_number(lua_State *L, bool fine, double number)
{
    if (!fine)
        return 0;
    lua_pushnumber(L, number);
    return 1;
}

static int reader_place(lua_State *L)
{
    struct nats_text subject = subject_behind(L, check_reader(L));
    double number;
    bool fine = nats_number(&subject, &number);
    return push_number(L, fine, number);
}

static int reader_reply(lua_State *L)
{
    return push_text(L, &check_reader(L)->heard.reply);
}

static int reader_data(lua_State *L)
{
    return push_text(L, &check_reader(L)->heard.data);
}

static int reader_header(lua_State *L)
{
    struct reader *reader = check_reader(L);
    struct nats_text value = {.bytes = NULL};
    size_t size;
    const char *name = luaL_checklstring(L, 2, &size);
    (void)nats_header(&reader->heard.head, name, size, &value);
    return push_text(L, &value);
}

static int reader_status(lua_State *L)
{
    struct nats_text status = {.bytes = NULL};
    (void)nats_status(&check_reader(L)->heard.head, &status);
    return push_text(L, &status);
}

static int reader_headers(lua_State *L)
{
    struct nats_text rest = check_reader(L)->heard.head, name, value;
    char small[NAME_MOST];
    lua_newtable(L);
    while (nats_take_header(&rest, &name, &value)) {
        if (name.size > sizeof(small))
            continue;
        for (size_t i = 0; i < name.size; i++)
            small[i] = (char)tolower((unsigned char)name.bytes[i]);
        lua_pushlstring(L, small, name.size);
        (void)push_text(L, &value);
        lua_rawset(L, -3);
    }
    return 1;
}

static int reader_acknowledged(lua_State *L)
{
    double sequence;
    bool fine = nats_acknowledged(&check_reader(L)->heard.data, &sequence);
    return push_number(L, fine, sequence);
}

/* $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.SEQUENCE.TIME.PENDING, the first sequence the
 * stream's. */
static int reader_delivered(lua_State *L)
{
    enum { JS, ACK, SEQUENCE = 5, TIME = 7, PENDING = 8, PARTS = 9 };
    struct nats_text rest = check_reader(L)->heard.reply, parts[PARTS];
    double sequence, pending;
    int count = 0;
    while (count < PARTS && nats_take_word(&rest, '.', &parts[count]))
        count++;
    if (count < PARTS || rest.size > 0 || !nats_is(&parts[JS], "$JS") ||
        !nats_is(&parts[ACK], "ACK") || !nats_number(&parts[SEQUENCE], &sequence) ||
        !nats_number(&parts[PENDING], &pending) || !nats_is_digits(&parts[TIME]))
        return 0;
    lua_pushnumber(L, sequence);
    (void)push_text(L, &parts[TIME]);
    lua_pushnumber(L, pending);
    return 3;
}

static int reader_gc(lua_State *L)
{
    struct reader *reader = check_reader(L);
    forget_heard(reader);
    reader->taken = 0;
    buffer_free(&reader->buffer);
    return 0;
}

int bind_open_nats(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"feed", reader_feed},           {"next", reader_next},
        {"subject", reader_subject},     {"place", reader_place},
        {"reply", reader_reply},         {"data", reader_data},
        {"header", reader_header},       {"headers", reader_headers},
        {"status", reader_status},       {"acknowledged", reader_acknowledged},
        {"delivered", reader_delivered}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"reader", reader_new}, {NULL, NULL}};
    bind_make_type(L, READER_TYPE, methods, reader_gc);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

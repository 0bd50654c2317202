/* Messages are handled in the order in which they came, as many as there is room for. */
#include "candidate/mailbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static lua_State *L;
static struct mailbox mailbox;

static int open_mailbox(void **state)
{
    (void)state;
    mailbox = (struct mailbox){.references = NULL};
    L = luaL_newstate();
    return L != NULL ? 0 : -1;
}

static int close_mailbox(void **state)
{
    (void)state;
    mailbox_clear(&mailbox, L);
    lua_close(L);
    return 0;
}

static bool put(int number)
{
    lua_pushinteger(L, number);
    bool taken = mailbox_put(&mailbox, L);
    assert_int_equal(lua_gettop(L), 0);
    return taken;
}

static int take(void)
{
    mailbox_take(&mailbox, L);
    int number = lua_isnil(L, -1) ? 0 : (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return number;
}

/* The ring grows while its first message is anywhere in it. */
static void messages_come_in_the_order_in_which_they_were_sent(void **state)
{
    (void)state;
    int sent = 0;
    int taken = 0;
    for (int round = 1; round < 40; round++) {
        for (int i = 0; i < round; i++)
            assert_true(put(++sent));
        for (int i = 0; i < round / 2; i++)
            assert_int_equal(take(), ++taken);
    }
    while (taken < sent)
        assert_int_equal(take(), ++taken);
    assert_int_equal(take(), 0);
}

static void a_full_mailbox_says_so(void **state)
{
    (void)state;
    for (int i = 1; i <= MAILBOX_MAX; i++)
        assert_true(put(i));
    assert_false(put(MAILBOX_MAX + 1));
    assert_int_equal(take(), 1);
    assert_true(put(MAILBOX_MAX + 1));
}

static void an_empty_one_gives_nil(void **state)
{
    (void)state;
    mailbox_take(&mailbox, L);
    assert_int_equal(lua_gettop(L), 1);
    assert_true(lua_isnil(L, 1));
    lua_pop(L, 1);
}

/* Puts a table that the list on the stack's bottom does not keep alive. */
static void put_table(int number)
{
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawseti(L, 1, number);
    assert_true(mailbox_put(&mailbox, L));
}

static bool lives(int number)
{
    lua_rawgeti(L, 1, number);
    bool there = !lua_isnil(L, -1);
    lua_pop(L, 1);
    return there;
}

static void a_message_lives_no_longer_than_who_took_it(void **state)
{
    (void)state;
    (void)luaL_loadstring(L, "return setmetatable({}, {__mode = 'v'})");
    luaL_openlibs(L);
    lua_call(L, 0, 1);
    for (int i = 1; i <= 6; i++)
        put_table(i);
    mailbox_take(&mailbox, L);
    lua_pop(L, 1);
    (void)lua_gc(L, LUA_GCCOLLECT, 0);
    assert_false(lives(1));
    assert_true(lives(2) && lives(6));
    mailbox_clear(&mailbox, L);
    assert_int_equal(lua_gettop(L), 1);
    (void)lua_gc(L, LUA_GCCOLLECT, 0);
    for (int i = 2; i <= 6; i++)
        assert_false(lives(i));
    lua_pop(L, 1);
    assert_true(put(7)); /* and it can be used again */
    assert_int_equal(take(), 7);
    assert_int_equal(take(), 0);
}

#define MAILBOX_TEST(name) cmocka_unit_test_setup_teardown(name, open_mailbox, close_mailbox)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MAILBOX_TEST(messages_come_in_the_order_in_which_they_were_sent),
        MAILBOX_TEST(a_full_mailbox_says_so),
        MAILBOX_TEST(an_empty_one_gives_nil),
        MAILBOX_TEST(a_message_lives_no_longer_than_who_took_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "lua/modules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <lauxlib.h>
#include <lualib.h>

static lua_State *open_with(const struct embedded_module *sample)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    modules_open(L, sample);
    return L;
}

/* Whether the searcher loads bytecode: its first upvalue. */
static bool compiled(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "loaders");
    lua_rawgeti(L, -1, 2);
    assert_non_null(lua_getupvalue(L, -1, 1));
    bool result = lua_toboolean(L, -1);
    lua_settop(L, 0);
    return result;
}

static void assert_loads(lua_State *L)
{
    assert_int_equal(luaL_dostring(L, "return require('crown.text.hex')('\\1\\255')"), 0);
    assert_string_equal(lua_tostring(L, -1), "01ff");
    lua_close(L);
}

static void bytecode_is_loaded_by_the_luajit_that_made_it(void **state)
{
    (void)state;
    lua_State *L = open_with(&embedded_sample);
    assert_true(compiled(L));
    assert_loads(L);
}

static void another_luajit_is_given_the_source(void **state)
{
    (void)state;
    struct embedded_module other = embedded_sample;
    char code[4096];
    assert_true(other.code_size <= sizeof(code));
    memcpy(code, embedded_sample.code, other.code_size);
    code[other.code_size / 2] ^= 1;
    other.code = code;
    lua_State *L = open_with(&other);
    assert_false(compiled(L));
    assert_loads(L);
}

static void one_that_makes_less_of_it_is_another(void **state)
{
    (void)state;
    struct embedded_module other = embedded_sample;
    other.code_size++;
    lua_State *L = open_with(&other);
    assert_false(compiled(L));
    assert_loads(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytecode_is_loaded_by_the_luajit_that_made_it),
        cmocka_unit_test(another_luajit_is_given_the_source),
        cmocka_unit_test(one_that_makes_less_of_it_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

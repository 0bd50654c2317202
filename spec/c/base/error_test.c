#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void an_error_says_what_was_done_and_on_what(void **state)
{
    (void)state;
    struct crown_error err = {0};
    assert_int_equal(error_set(&err, ERROR_DNS, "resolve %s: %d answers", "db", 0), -1);
    assert_int_equal(err.code, ERROR_DNS);
    assert_string_equal(err.message, "resolve db: 0 answers");
}

static void the_system_s_reason_is_appended(void **state)
{
    (void)state;
    struct crown_error err = {0};
    assert_int_equal(error_set_errno(&err, ENOENT, "open %s", "/x"), -1);
    assert_int_equal(err.code, ERROR_SYSTEM);
    assert_string_equal(err.message, "open /x: No such file or directory");
}

static void a_limit_of_the_user_is_named(void **state)
{
    (void)state;
    struct crown_error err = {0};
    (void)error_set_errno(&err, EMFILE, "open /x");
    assert_string_equal(err.message, "open /x: Too many open files (ulimit -n, LimitNOFILE=)");
    (void)error_set_errno(&err, EFBIG, "write /x");
    assert_string_equal(err.message, "write /x: File too large (ulimit -f, LimitFSIZE=)");
}

static void nobody_has_to_take_the_error(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, ERROR_TLS, "x"), -1);
    assert_int_equal(error_set_errno(NULL, EPERM, "x"), -1);
}

static void a_long_message_is_cut_and_ends(void **state)
{
    (void)state;
    char text[600];
    struct crown_error err;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)error_set(&err, ERROR_SYSTEM, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    (void)error_set_errno(&err, EPERM, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

static void every_code_has_its_own_word(void **state)
{
    (void)state;
    for (int a = ERROR_NONE; a <= ERROR_MEMORY; a++) {
        assert_string_not_equal(error_code_name((enum error_code)a), "unknown");
        for (int b = ERROR_NONE; b < a; b++)
            assert_string_not_equal(error_code_name((enum error_code)a),
                                    error_code_name((enum error_code)b));
    }
    assert_string_equal(error_code_name(ERROR_TIMEOUT), "timeout");
    assert_string_equal(error_code_name((enum error_code)(ERROR_MEMORY + 1)), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_says_what_was_done_and_on_what),
        cmocka_unit_test(the_system_s_reason_is_appended),
        cmocka_unit_test(a_limit_of_the_user_is_named),
        cmocka_unit_test(nobody_has_to_take_the_error),
        cmocka_unit_test(a_long_message_is_cut_and_ends),
        cmocka_unit_test(every_code_has_its_own_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(const struct address *address)
{
    static char text[ADDRESS_TEXT_SIZE];
    address_text(address, text, sizeof(text));
    return text;
}

static void an_address_reads_and_writes_itself(void **state)
{
    (void)state;
    static const struct {
        const char *host, *text;
        int family;
        unsigned port;
    } cases[] = {{"192.0.2.1", "192.0.2.1:5432", AF_INET, 5432},
                 {"2001:db8::1", "[2001:db8::1]:5432", AF_INET6, 5432},
                 {"unix:/run/a socket", "unix:/run/a socket", AF_UNIX, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct address address;
        assert_int_equal(address_parse(&address, cases[i].host, 5432), 0);
        assert_int_equal(address_plain(&address)->sa_family, cases[i].family);
        assert_int_equal(address_port(&address), cases[i].port);
        assert_string_equal(text_of(&address), cases[i].text);
    }
}

static void a_name_is_none(void **state)
{
    (void)state;
    static const char *const names[] = {"localhost", "", "1.2.3", "[::1]", "db.example"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct address address;
        assert_int_equal(address_parse(&address, names[i], 1), -1);
        assert_false(address_is_number(names[i]));
    }
    assert_true(address_is_number("::1"));
    assert_false(address_is_number("unix:/run/a"));
}

static void a_path_has_to_fit(void **state)
{
    (void)state;
    struct address address;
    char host[5 + 108 + 1] = "unix:";
    memset(host + 5, 'x', 108);
    assert_int_equal(address_parse(&address, host, 0), -1);
    host[5 + 107] = '\0'; /* with the terminator it fits: 108 bytes, unix(7) */
    assert_int_equal(address_parse(&address, host, 0), 0);
    assert_string_equal(text_of(&address), host);
}

static void a_socket_without_a_name_has_no_path(void **state)
{
    (void)state;
    struct address address = {.size = sizeof(sa_family_t)};
    address.storage.ss_family = AF_UNIX;
    assert_string_equal(text_of(&address), "unix:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_reads_and_writes_itself),
        cmocka_unit_test(a_name_is_none),
        cmocka_unit_test(a_path_has_to_fit),
        cmocka_unit_test(a_socket_without_a_name_has_no_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

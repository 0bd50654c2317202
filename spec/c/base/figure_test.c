#include "base/figure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void never_has_an_exponent(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {30000, "30000"},
        {2.0 / 3, "0.667"},
        {7 / 3.0, "2.33"},
        {999.7, "1000"},
        {1234.5, "1234"},
        {31536000, "31536000"},
        {0.00001, "0.00001"},
        {-30000, "-30000"},
        {9223372036.0, "9223372036"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(figure_about(cases[i].value).text, cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_has_an_exponent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

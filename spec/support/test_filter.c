/* TEST_FILTER=NAME, with * and ? as in the shell, has a C test run these of its cases only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void __attribute__((constructor)) take_filter(void)
{
    static char filter[128]; /* a test may move its environment */
    const char *given = getenv("TEST_FILTER");
    if (given == NULL)
        return;
    (void)snprintf(filter, sizeof(filter), "%s", given);
    cmocka_set_test_filter(filter);
}

#include "telemetry/history.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop *loop;
static char directory[64], path[96];

static int open_all(void **state)
{
    (void)state;
    struct crown_error err;
    loop = loop_new(&err);
    (void)snprintf(directory, sizeof(directory), "/tmp/crown-history-XXXXXX");
    if (loop == NULL || mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/history", directory);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    loop_free(loop);
    (void)unlink(path);
    return rmdir(directory);
}

/* What the file has after a line for these fields. */
static const char *noted(const struct log_field *fields, unsigned count)
{
    static char text[512];
    struct appender *appender = appender_new(loop, path, 1000);
    assert_non_null(appender);
    history_note(appender, "leadership.lost", 1700000000.25, fields, count);
    appender_close(appender);
    int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    ssize_t size = read(fd, text, sizeof(text) - 1);
    assert_true(size >= 0);
    assert_int_equal(0, close(fd));
    text[size] = '\0';
    return text;
}

static void a_line_has_what_the_history_shows(void **state)
{
    (void)state;
    const struct log_field fields[] = {
        log_string("name", "reports"), log_string("phase", "leading"), log_string("leader", "ann"),
        log_integer("epoch", INT64_C(9007199254740991)), log_string("reason", "shutdown")};
    assert_string_equal("{\"event\":\"leadership.lost\",\"time\":1700000000.250000,"
                        "\"name\":\"reports\",\"leader\":\"ann\",\"epoch\":9007199254740991,"
                        "\"reason\":\"shutdown\"}\n",
                        noted(fields, 5));
}

static void no_byte_of_a_store_ends_a_line_or_a_text(void **state)
{
    (void)state;
    const struct log_field fields[] = {log_string("leader", "a\"b\\c\nd\x1b"
                                                            "e\xff\xc3\xa9")};
    assert_string_equal("{\"event\":\"leadership.lost\",\"time\":1700000000.250000,"
                        "\"leader\":\"a\\u0022b\\u005cc\\u000ad\\u001be\xff\xc3\xa9\"}\n",
                        noted(fields, 1));
}

static void a_line_without_end_is_left_out(void **state)
{
    (void)state;
    static char name[100000];
    memset(name, 'n', sizeof(name) - 1);
    const struct log_field fields[] = {log_string("leader", name)};
    assert_string_equal("", noted(fields, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_what_the_history_shows, open_all, close_all),
        cmocka_unit_test_setup_teardown(no_byte_of_a_store_ends_a_line_or_a_text, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_line_without_end_is_left_out, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

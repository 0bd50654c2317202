#include "base/log.h"
#include "base/redact.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[2] = {-1, -1}; /* of a pipe */
static int original = -1;

/* A pipe, and no file: what is written there can be read at once. */
static int open_capture(void **state)
{
    (void)state;
    original = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    if (original < 0 || pipe(ends) < 0)
        return -1;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

static int close_capture(void **state)
{
    (void)state;
    return close(original) < 0 || close(ends[0]) < 0 || close(ends[1]) < 0 ? -1 : 0;
}

static int begin_capture(void **state)
{
    (void)state;
    log_set_level(LOG_DEBUG);
    log_set_format(LOG_TEXT);
    return log_set_filter("") < 0 || dup2(ends[1], STDERR_FILENO) < 0 ? -1 : 0;
}

static int end_capture(void **state)
{
    (void)state;
    log_set_level(LOG_INFO);
    return dup2(original, STDERR_FILENO) < 0 ? -1 : 0;
}

/* What was written since the last call. */
static const char *written(void)
{
    static char text[20000];
    ssize_t size = read(ends[0], text, sizeof(text) - 1);
    text[size < 0 ? 0 : size] = '\0';
    return text;
}

static void text_shows_a_traceback_line_by_line(void **state)
{
    (void)state;
    const struct log_field fields[] = {
        log_string("error", "app.lua:3: no\nstack traceback:\n\tapp.lua:3: in \x1b[2Jwon"),
        log_integer("epoch", 7)};
    log_event(LOG_ERROR, "handler.error", fields, 2);
    const char *text = written();
    assert_non_null(strstr(text, "handler.error error=\"app.lua:3: no\" epoch=7\n"
                                 "    stack traceback:\n     app.lua:3: in  [2Jwon\n"));
    const struct log_field secret[] = {log_string("error", "password=\"a\nb\" c")};
    log_event(LOG_ERROR, "x", secret, 1);
    text = written();
    assert_null(strstr(text, "b\""));
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void text_begins_with_the_time_and_a_padded_level(void **state)
{
    (void)state;
    const struct log_field fields[] = {log_string("name", "db main"), log_integer("epoch", -7),
                                       log_number("ttl", 2.5), log_boolean("child", true)};
    log_event(LOG_INFO, "leading", fields, 4);
    const char *line = written();
    assert_int_equal(line[10], 'T');
    assert_int_equal(line[19], '.');
    assert_int_equal(line[23], 'Z');
    assert_string_equal(line + 24, " info  leading name=\"db main\" epoch=-7 ttl=2.5 child=true\n");
}

/* A person at a terminal knows which day it is. */
static void text_on_a_terminal_begins_with_the_time_of_day(void **state)
{
    (void)state;
    char shown[128] = {0};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && dup2(terminal, STDERR_FILENO) >= 0);
    log_warn("here");
    assert_true(read(master, shown, sizeof(shown) - 1) > 0);
    assert_int_equal(shown[2], ':');
    assert_int_equal(shown[8], '.');
    assert_string_equal(shown + 12, " warn  here\r\n");
    assert_int_equal(close(terminal), 0);
    assert_int_equal(close(master), 0);
}

static void a_message_stays_on_one_line(void **state)
{
    (void)state;
    log_warn("a\nb\x01%s", "c");
    assert_string_equal(written() + 24, " warn  a b c\n");
    log_warn("a task: %s", "no\nstack traceback:\n\tapp.lua:3: in \x1b[2Jwon\n1 error x");
    assert_string_equal(written() + 24, " warn  a task: no\n    stack traceback:\n"
                                        "     app.lua:3: in  [2Jwon\n    1 error x\n");
}

static void logfmt_quotes_what_is_no_word(void **state)
{
    (void)state;
    const struct log_field fields[] = {log_string("empty", ""), log_string("word", "x/y"),
                                       log_string("odd", "a=b\"c\\d\n"),
                                       log_number("ratio", (double)INFINITY)};
    log_set_format(LOG_LOGFMT);
    log_event(LOG_ERROR, "it failed", fields, 4);
    const char *line = written();
    assert_memory_equal(line, "time=", 5);
    assert_int_equal(line[5 + 23], 'Z');
    assert_string_equal(line + 5 + 24, " level=error msg=\"it failed\" empty=\"\" word=x/y "
                                       "odd=\"a=b\\\"c\\\\d\\n\" ratio=inf\n");
}

static void a_line_has_each_key_once(void **state)
{
    (void)state;
    static const enum log_format formats[] = {LOG_TEXT, LOG_LOGFMT, LOG_JSON};
    static const char *const wanted[] = {
        " x name=a level_=1 msg_=2 epoch=2 time_=4\n",
        " msg=x name=a level_=1 msg_=2 epoch=2 time_=4\n",
        "\"msg\":\"x\",\"name\":\"a\",\"level_\":1,\"msg_\":2,\"epoch\":2,\"time_\":4}\n"};
    const struct log_field fields[] = {log_string("name", "a"), log_integer("epoch", 1),
                                       log_integer("level", 1), log_integer("msg", 2),
                                       log_integer("time", 3),  log_integer("epoch", 2),
                                       log_integer("time_", 4)};
    for (size_t i = 0; i < 3; i++) {
        log_set_format(formats[i]);
        log_event(LOG_INFO, "x", fields, 7);
        const char *line = written();
        assert_non_null(strstr(line, "x"));
        assert_string_equal(line + strlen(line) - strlen(wanted[i]), wanted[i]);
    }
}

static void json_escapes_what_json_must(void **state)
{
    (void)state;
    const struct log_field fields[] = {log_string("text", "tab\t\"quoted\"\x01"),
                                       log_integer("count", 3), log_number("never", (double)NAN),
                                       log_boolean("on", false)};
    log_set_format(LOG_JSON);
    log_event(LOG_DEBUG, "line\nbreak", fields, 4);
    const char *line = written();
    assert_memory_equal(line, "{\"time\":\"", 9);
    assert_string_equal(line + 9 + 24,
                        "\",\"level\":\"debug\",\"msg\":\"line\\nbreak\",\"text\":\"tab\\u0009"
                        "\\\"quoted\\\"\\u0001\",\"count\":3,\"never\":null,\"on\":false}\n");
}

/* ESC, and its twin in the second control block as UTF-8 has it (ECMA-48): a stranger's words must
 * not reach the terminal as commands. */
static void nothing_that_a_terminal_obeys_is_written(void **state)
{
    (void)state;
    const struct log_field fields[] = {log_string("node", "a\x1b[31m"),
                                       log_string("peer", "b\xc2\x9b"
                                                          "0m")};
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_set_format((enum log_format)format);
        log_event(LOG_INFO,
                  "said \x1b]0;x\x07 and \xc2\x9d"
                  "0;y",
                  fields, 2);
        const char *line = written();
        assert_null(strchr(line, '\x1b'));
        assert_null(strstr(line, "\xc2\x9b"));
        assert_null(strstr(line, "\xc2\x9d"));
        assert_non_null(strstr(line, "a\\u001b[31m"));
        assert_non_null(strstr(line, "b\\u009b0m"));
    }
}

/* Bytes that are no UTF-8: to a terminal of another encoding 0x9b is a command, and to a reader of
 * JSON the line is none. */
static void what_is_no_character_is_not_written(void **state)
{
    (void)state;
    static const char *const none[] = {"\xff",
                                       "\x9b"
                                       "31m",
                                       "\xc3",
                                       "\xe2\x82",
                                       "\xc0\xaf",
                                       "\xed\xa0\x80",
                                       "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
            const struct log_field fields[] = {log_string("error", none[i])};
            log_set_format((enum log_format)format);
            log_event(LOG_INFO, none[i], fields, 1);
            const char *line = written();
            for (const char *at = line; *at != '\0'; at++)
                assert_true((unsigned char)*at < 0x80);
            assert_non_null(strstr(line, "\\ufffd"));
        }
    const struct log_field fields[] = {
        log_string("node", "\xc3\xa4-\xe2\x82\xac-\xf0\x9f\x91\x91")};
    log_event(LOG_INFO, "line", fields, 1);
    assert_non_null(strstr(written(), "\xc3\xa4-\xe2\x82\xac-\xf0\x9f\x91\x91"));
}

static void a_line_too_long_is_cut_and_still_ends(void **state)
{
    (void)state;
    static char text[10000];
    memset(text, 'x', sizeof(text) - 1);
    log_event(LOG_ERROR, text, NULL, 0);
    const char *line = written();
    assert_int_equal(line[strlen(line) - 1], '\n');
    assert_true(strlen(line) < sizeof(text));
}

static void less_than_the_level_is_not_written(void **state)
{
    (void)state;
    log_set_level(LOG_WARN);
    log_info("quiet");
    assert_string_equal(written(), "");
    log_error("loud");
    assert_string_equal(written() + 24, " error loud\n");
}

static void the_longest_prefix_sets_the_level(void **state)
{
    (void)state;
    log_set_level(LOG_INFO);
    assert_int_equal(log_set_filter("child=error,child.out=debug,lease=warn"), 0);
    assert_false(log_enabled(LOG_WARN, "child.exit"));
    assert_true(log_enabled(LOG_ERROR, "child.exit"));
    assert_true(log_enabled(LOG_DEBUG, "child.out"));
    assert_false(log_enabled(LOG_INFO, "lease"));
    assert_true(log_enabled(LOG_INFO, "other"));
    assert_false(log_enabled(LOG_DEBUG, "other"));
}

static void a_filter_that_does_not_parse_changes_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {"child",
                                      "=debug",
                                      "child=loud",
                                      "child=",
                                      "child=debug,lease",
                                      ",",
                                      "a=debugdebugdebugdebug"};
    char many[17 * 8 + 1] = "";
    log_set_level(LOG_INFO);
    assert_int_equal(log_set_filter("child=error"), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(log_set_filter(bad[i]), -1);
    for (int i = 0; i < 17; i++)
        (void)strcat(many, "a=debug,");
    assert_int_equal(log_set_filter(many), -1);
    assert_false(log_enabled(LOG_WARN, "child"));
    assert_int_equal(log_set_filter(""), 0);
    assert_true(log_enabled(LOG_WARN, "child"));
}

static void names_and_levels_match(void **state)
{
    (void)state;
    enum log_level level;
    enum log_format format;
    for (int i = 0; i < LOG_LEVEL_COUNT; i++) {
        assert_int_equal(log_level_from_name(log_level_name((enum log_level)i), &level), 0);
        assert_int_equal(level, i);
    }
    assert_int_equal(log_level_from_name("WARN", &level), -1);
    assert_int_equal(log_format_from_name("logfmt", &format), 0);
    assert_int_equal(format, LOG_LOGFMT);
    assert_int_equal(log_format_from_name("xml", &format), -1);
}

static void secrets_are_blotted_out(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"postgres://crown:hunter2@db/x", "postgres://crown:***@db/x"},
        {"redis://:s3cr3t@host:6379/0", "redis://:***@host:6379/0"},
        {"a://u:p@ss@h b://v:w@i", "a://u:***@h b://v:*@i"},
        {"http://host:80/path", "http://host:80/path"},
        {"http://user@host/", "http://user@host/"},
        {"oban+postgres://user@host/x", "oban+postgres://user@host/x"},
        {"nats://t0ken@host:4222/B", "nats://***@host:4222/B"},
        {"on \"arn:aws:s3:::b/p/@x\"; x:y@h", "on \"arn:aws:s3:::b/p/@x\"; x:*@h"},
        {"redis://hunter2@host", "redis://***@host"},
        {"(rediss://hunter2@host)", "(rediss://***@host)"},
        {"mystore://perhaps@host", "mystore://***@host"},
        {"://x@y", "://*@y"},
        {"x?PASSWORD=abcd&y=1", "x?PASSWORD=***&y=1"},
        {"secret=\"quoted, so\" token=abcdef,", "secret=\"***\" token=***,"},
        {"password=", "password="},
        {"nothing to hide", "nothing to hide"},
        {"oracle 'postgres//app:s3cret@h/app'", "oracle 'postgres//app:***@h/app'"},
        {"postgres:/app:s3cret@h", "postgres:/app:***@h"},
        {"postgres://app:s3cret/@x@h/app", "postgres://app:***@h/app"},
        {"app:s3c@ret@h b:@i c@j:1", "app:***@h b:@i c@j:1"},
        {"a://u:p@h,b://v:w@i", "a://u:*@h,b://v:*@i"},
        {"redis://h:6379/0?name=a@b", "redis://h:6379/0?name=a@b"},
        {"postgres://app:s3cret@h:5432,i:1/d?application_name=app@h1&ttl=4",
         "postgres://app:***@h:5432,i:1/d?application_name=app@h1&ttl=4"},
        {"http://joe@h:80?by=joe@h b:c?d=e@h", "http://joe@h:80?by=joe@h b:***@h"},
        {"redis://h:12?a=b/@x", "redis://h:12?a=b/@x"},
        {"app:123456/?a=b@h", "app:***@h"},
        {"redis://app:12/5@h", "redis://app:***@h"},
        {"redis://app:12?5@h", "redis://app:***@h"},
        {"redis://hun/ter#2@h:1/0", "redis://***@h:1/0"},
        {"nats://app:/hunter2@h,tls://to/ken@i", "nats://app:***@h,tls://***@i"},
        {"unix:/run/user@1 at 10:30:00 x@y", "unix:/run/user@1 at 10:30:00 x@y"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char text[100];
        (void)strcpy(text, pairs[i][0]);
        redact(text);
        assert_string_equal(text, pairs[i][1]);
    }
}

static void secrets_do_not_reach_the_log(void **state)
{
    (void)state;
    const struct log_field field = log_string("url", "postgres://crown:hunter2@db/x");
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_set_format((enum log_format)format);
        log_event(LOG_INFO, "connect to redis://a:hunter2@b", &field, 1);
        const char *line = written();
        assert_null(strstr(line, "hunter2"));
        assert_non_null(strstr(line, "crown:***@db/x"));
    }
}

/* A password may be written with the very characters that a format escapes. */
static void a_secret_with_quotes_does_not_reach_the_log(void **state)
{
    (void)state;
    const struct log_field fields[] = {log_string("url", "postgres://crown:hun\"ter2@db/x"),
                                       log_string("option", "password=\"hunter2\"")};
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_set_format((enum log_format)format);
        log_event(LOG_INFO, "connect", fields, 2);
        const char *line = written();
        assert_null(strstr(line, "hunter2"));
        assert_null(strstr(line, "ter2"));
    }
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, begin_capture, end_capture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(text_shows_a_traceback_line_by_line),
        LOG_TEST(text_begins_with_the_time_and_a_padded_level),
        LOG_TEST(text_on_a_terminal_begins_with_the_time_of_day),
        LOG_TEST(a_message_stays_on_one_line),
        LOG_TEST(logfmt_quotes_what_is_no_word),
        LOG_TEST(a_line_has_each_key_once),
        LOG_TEST(json_escapes_what_json_must),
        LOG_TEST(nothing_that_a_terminal_obeys_is_written),
        LOG_TEST(what_is_no_character_is_not_written),
        LOG_TEST(a_line_too_long_is_cut_and_still_ends),
        LOG_TEST(less_than_the_level_is_not_written),
        LOG_TEST(the_longest_prefix_sets_the_level),
        LOG_TEST(a_filter_that_does_not_parse_changes_nothing),
        LOG_TEST(names_and_levels_match),
        LOG_TEST(secrets_are_blotted_out),
        LOG_TEST(secrets_do_not_reach_the_log),
        LOG_TEST(a_secret_with_quotes_does_not_reach_the_log),
    };
    return cmocka_run_group_tests(tests, open_capture, close_capture);
}

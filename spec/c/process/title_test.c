/* What `ps` shows. */
#include "process/title.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

static char **taken;

static void assert_shows(const char *comm, const char *line)
{
    char name[16], text[1024];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const ssize_t size = read(fd, text, sizeof(text) - 1);
    assert_int_equal(close(fd), 0);
    assert_true(size >= 0);
    text[size] = '\0';
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_string_equal(name, comm);
    assert_string_equal(text, line);
}

static void what_was_typed_is_taken_and_shown_no_more(void **state)
{
    (void)state;
    assert_non_null(taken);
    assert_non_null(taken[0]);
    assert_shows("crown-supervise", "crown-supervise");
}

static void a_name_stands_alone_or_before_what_it_does(void **state)
{
    (void)state;
    title_set("crown-keeper", "db main");
    assert_shows("crown-keeper", "crown-keeper db main");
    title_set("crown-spare", "");
    assert_shows("crown-spare", "crown-spare");
}

static void a_line_changes_no_name_and_has_no_secret(void **state)
{
    (void)state;
    title_set("crown-runtime", "");
    title_line("crown-runtime redis://ann:secret@db/1");
    assert_shows("crown-runtime", "crown-runtime redis://ann:***@db/1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_typed_is_taken_and_shown_no_more),
        cmocka_unit_test(a_name_stands_alone_or_before_what_it_does),
        cmocka_unit_test(a_line_changes_no_name_and_has_no_secret),
    };
    taken = title_take_arguments(argc, argv, environ);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

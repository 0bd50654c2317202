/* Which stacks are large enough, and what is said of others. */
#include "process/limits.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static rlim_t stack;
static int answer;

int __wrap_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit(int resource, struct rlimit *limit)
{
    assert_int_equal(resource, RLIMIT_STACK);
    limit->rlim_cur = stack;
    return answer;
}

/* @return as limits_meet; what it says is in `text`. */
static int meet(rlim_t bytes, char text[200])
{
    int ends[2];
    const int own = dup(STDERR_FILENO);
    stack = bytes;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    const int met = limits_meet();
    assert_int_equal(dup2(own, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(ends[1]) | close(own), 0);
    const ssize_t size = read(ends[0], text, 199);
    assert_true(size >= 0);
    text[size] = '\0';
    assert_int_equal(close(ends[0]), 0);
    return met;
}

static void of_stacks_are_met_from_256_kib_on(void **state)
{
    static const rlim_t enough[] = {256u << 10, (256u << 10) + 1, RLIM_INFINITY};
    char text[200];
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(meet(enough[i], text), 0);
        assert_string_equal(text, "");
    }
    assert_int_equal(meet((256u << 10) - 1, text), -1);
    assert_string_equal(text, "crown-lua: stacks of 255 KiB are too small: allow 256 KiB or more "
                              "(ulimit -s, LimitSTACK=)\n");
}

static void that_nobody_knows_are_met(void **state)
{
    char text[200];
    (void)state;
    answer = -1;
    assert_int_equal(meet(0, text), 0);
    assert_string_equal(text, "");
    answer = 0;
}

/* A file that is too large is an error of a write then. */
static void of_files_end_nobody(void **state)
{
    struct sigaction action;
    char text[200];
    (void)state;
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(meet(RLIM_INFINITY, text), 0);
    assert_int_equal(sigaction(SIGXFSZ, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_IGN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_stacks_are_met_from_256_kib_on),
        cmocka_unit_test(that_nobody_knows_are_met),
        cmocka_unit_test(of_files_end_nobody),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

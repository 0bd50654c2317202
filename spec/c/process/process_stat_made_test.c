/* What is made of a /proc that the test has written. */
#include "process/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"

#define THREADS 300 /* a look into the folder shows some sixty */

static char root[PATH_MAX / 2];
static const char *self; /* where /proc/self leads; NULL: nowhere */
static int refused;      /* with this errno no file opens; 0: each does */

static void path_of(const char *path, char made[PATH_MAX])
{
    (void)snprintf(made, PATH_MAX, "%s%s", root, path);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    char made[PATH_MAX];
    errno = refused;
    if (refused != 0)
        return -1;
    assert_true((flags & O_CLOEXEC) != 0);
    path_of(path, made);
    return __real_open(made, flags);
}

ssize_t __wrap_readlink(const char *path, char *text, size_t room);
ssize_t __wrap_readlink(const char *path, char *text, size_t room)
{
    assert_string_equal(path, "/proc/self");
    if (self == NULL)
        return -1;
    memset(text, '9', room); /* it ends it with nothing */
    memcpy(text, self, strlen(self));
    assert_true(strlen(self) < room);
    return (ssize_t)strlen(self);
}

static void make(const char *path, const char *text)
{
    char made[PATH_MAX];
    path_of(path, made);
    for (char *slash = strchr(made + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(made, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(made, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state)
{
    (void)state;
    const char *directory = getenv("TMPDIR");
    (void)snprintf(root, sizeof(root), "%s/proc.XXXXXX", directory != NULL ? directory : "/tmp");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[PATH_MAX];
    (void)state;
    (void)snprintf(command, sizeof(command), "rm -r '%s'", root);
    return system(command); /* NOLINT(cert-env33-c): of the test alone */
}

static void of_a_line_that_is_too_short_nothing_is_known(void **state)
{
    static const char *const lines[] = {"", "7", "7 (a", "7 (a)", "7 (a) S", "7 (a) S "};
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        make("/proc/7/stat", lines[i]);
        assert_int_equal(process_stat(7).state, '?');
        assert_int_equal(process_status(7), -1);
    }
    make("/proc/7/stat", "7 (a) S 8");
    assert_int_equal(process_stat(7).state, 'S');
    assert_int_equal(process_stat(7).parent, 8);
}

/* They begin with its name, which is 64 characters long at most where it is a kernel's thread. */
static void of_a_long_line_the_beginning_is_enough(void **state)
{
    char line[3000];
    (void)state;
    memset(line, '1', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    memcpy(line, "7 (a) R 81 ", 11);
    make("/proc/7/stat", line);
    assert_int_equal(process_stat(7).state, 'R');
    assert_int_equal(process_stat(7).parent, 81);
}

static void the_last_number_of_a_dead_one_is_how_it_ended(void **state)
{
    (void)state;
    make("/proc/7/stat", "7 (a 3) Z 1 2 3 1280\n");
    assert_int_equal(process_status(7), 1280);
    make("/proc/7/stat", "7 (a 3) X 1 2 3 10\n");
    assert_int_equal(process_status(7), 10);
    make("/proc/7/stat", "7 (a 3) S 1 2 3 10\n");
    assert_int_equal(process_status(7), -1);
}

static void who_traces_is_named_among_much_else(void **state)
{
    (void)state;
    make("/proc/7/status", "Name:\tTracerPid:\t5\nState:\tS\nTracerPid:\t77\nUid:\t0\n");
    assert_int_equal(process_tracer(7), 77);
    make("/proc/7/status", "Name:\ta\n");
    assert_int_equal(process_tracer(7), 0);
    make("/proc/7/status", "");
    assert_int_equal(process_tracer(7), 0);
}

static void children_that_cannot_be_listed_may_be_there(void **state)
{
    (void)state;
    assert_false(process_has_children(9)); /* it is gone */
    refused = EACCES;
    assert_true(process_has_children(9));
    refused = 0;
    make("/proc/9/task/9/children", "");
    assert_false(process_has_children(9));
    make("/proc/9/task/9/children", "1");
    assert_true(process_has_children(9));
}

static void make_thread(pid_t pid, int thread, const char *state)
{
    char path[64], line[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, thread);
    (void)snprintf(line, sizeof(line), "%d (a) %s 1 ", thread, state);
    make(path, line);
}

static void one_is_dead_when_all_its_threads_are(void **state)
{
    (void)state;
    make("/proc/20/stat", "20 (a) Z 1 ");
    for (int thread = 0; thread < THREADS; thread++)
        make_thread(20, 20 + thread, thread % 2 == 0 ? "Z" : "X");
    const unsigned before = descriptors_open();
    assert_true(process_is_dead(20));
    for (int thread = 0; thread < THREADS; thread += 13) {
        make_thread(20, 20 + thread, "S");
        assert_false(process_is_dead(20));
        make_thread(20, 20 + thread, "Z");
    }
    make("/proc/20/task/999/other", ""); /* it goes away at this moment */
    assert_true(process_is_dead(20));
    make("/proc/20/stat", "20 (a) S 1 ");
    assert_false(process_is_dead(20));
    assert_int_equal(descriptors_open(), before);
}

/* Who sees half of it takes the living for dead. */
static void one_whose_threads_cannot_be_seen_is_not_dead(void **state)
{
    (void)state;
    make("/proc/21/stat", "21 (a) Z 1 ");
    assert_false(process_is_dead(21)); /* there is no folder of them */
    make("/proc/21/task", "");
    assert_false(process_is_dead(21));
}

static void a_text_is_read_as_far_as_there_is_room(void **state)
{
    char text[8] = "-------";
    (void)state;
    make("/proc/some", "0123456789");
    assert_int_equal(process_read("/proc/some", text, 4), 4);
    assert_string_equal(text, "0123---");
    assert_int_equal(process_read("/proc/none", text, 4), -1);
    assert_int_equal(errno, ENOENT);
    make("/proc/one", "0");
    assert_int_equal(process_read("/proc/one", text, 4), 1);
    make("/proc/empty", "");
    assert_int_equal(process_read("/proc/empty", text, 4), 0);
    assert_int_equal(process_read("/proc", text, 4), -1);
    assert_string_equal(text, "0123---");
}

static void what_is_refused_is_named(void **state)
{
    char number[20];
    (void)state;
    (void)snprintf(number, sizeof(number), "%d", (int)getpid());
    self = NULL;
    assert_string_equal(process_stat_refused(), "find itself in /proc");
    self = "1";
    errno = 0;
    assert_string_equal(process_stat_refused(), "find itself in /proc");
    assert_int_equal(errno, ESRCH);
    self = number;
    assert_string_equal(process_stat_refused(), "list its children in /proc");
    make("/proc/thread-self/children", "");
    const unsigned before = descriptors_open();
    assert_null(process_stat_refused());
    assert_int_equal(descriptors_open(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_line_that_is_too_short_nothing_is_known),
        cmocka_unit_test(of_a_long_line_the_beginning_is_enough),
        cmocka_unit_test(the_last_number_of_a_dead_one_is_how_it_ended),
        cmocka_unit_test(who_traces_is_named_among_much_else),
        cmocka_unit_test(children_that_cannot_be_listed_may_be_there),
        cmocka_unit_test(one_is_dead_when_all_its_threads_are),
        cmocka_unit_test(one_whose_threads_cannot_be_seen_is_not_dead),
        cmocka_unit_test(a_text_is_read_as_far_as_there_is_room),
        cmocka_unit_test(what_is_refused_is_named),
    };
    return cmocka_run_group_tests_name("a made /proc", tests, make_root, remove_root);
}

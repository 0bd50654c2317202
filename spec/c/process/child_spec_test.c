#include "process/child_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "pages.h"

static char *const argv[] = {"/bin/app", "", "two words", NULL};
static char *const envp[] = {"A=1", "CROWN_ELECTION=db", NULL};
static const gid_t groups[] = {4, 20, 4000000};

static struct child_spec full_spec(void)
{
    return (struct child_spec){
        .argv = argv,
        .envp = envp,
        .cwd = "/tmp",
        .label = "db main",
        .set_ids = true,
        .uid = 1000,
        .gid = 1001,
        .groups = groups,
        .group_count = 3,
        .stdio = {CHILD_STDIO_NULL, CHILD_STDIO_FD, CHILD_STDIO_FD},
        .stdio_fd = {-1, 7, 8},
        .hold_fd = {9, 10},
        .hold_count = 2,
        .stop_signal = 10,
        .lease_signal = 12,
        .terminal = true,
        .ctrl_c_ends = true,
        .escalate = true,
        .isolation = CHILD_ISOLATION_PIDNS,
        .stop_at_ns = 1,
        .kill_at_ns = 2,
        .deadline_ns = TIME_NEVER,
    };
}

static void assert_same_lists(char *const *a, char *const *b)
{
    for (; *a != NULL; a++, b++)
        assert_string_equal(*a, *b);
    assert_null(*b);
}

static void a_spec_survives_the_way_to_the_keeper(void **state)
{
    (void)state;
    struct child_spec spec = full_spec();
    struct child_spec got;
    struct crown_error err;
    int fd = child_spec_write(&spec, &err);
    assert_true(fd >= 0);
    assert_int_equal(child_spec_read(fd, &got, &err), 0);
    assert_int_equal(close(fd), 0);
    assert_same_lists(spec.argv, got.argv);
    assert_same_lists(spec.envp, got.envp);
    assert_string_equal(got.cwd, "/tmp");
    assert_string_equal(got.label, "db main");
    assert_true(got.set_ids && got.terminal && got.ctrl_c_ends && got.escalate);
    assert_int_equal(got.uid, 1000);
    assert_int_equal(got.gid, 1001);
    assert_int_equal(got.group_count, 3);
    assert_memory_equal(got.groups, groups, sizeof(groups));
    assert_memory_equal(got.stdio, spec.stdio, sizeof(spec.stdio));
    /* Descriptors become places among those that came along. */
    assert_int_equal(got.stdio_fd[1], 0);
    assert_int_equal(got.stdio_fd[2], 1);
    assert_int_equal(got.hold_count, 2);
    assert_int_equal(got.hold_fd[0], 2);
    assert_int_equal(got.hold_fd[1], 3);
    assert_int_equal(got.hold_fd[2], 0);
    assert_int_equal(got.stop_signal, 10);
    assert_int_equal(got.lease_signal, 12);
    assert_int_equal(got.isolation, CHILD_ISOLATION_PIDNS);
    assert_int_equal(got.stop_at_ns, 1);
    assert_int_equal(got.kill_at_ns, 2);
    assert_true(got.deadline_ns == TIME_NEVER);
    child_spec_release(&got);
}

static void what_may_be_left_out_stays_out(void **state)
{
    (void)state;
    char *const one[] = {"x", NULL};
    char *const none[] = {NULL};
    struct child_spec spec = {.argv = one, .envp = none, .label = "", .stop_signal = 15};
    struct child_spec got;
    struct crown_error err;
    int fd = child_spec_write(&spec, &err);
    assert_int_equal(child_spec_read(fd, &got, &err), 0);
    assert_int_equal(close(fd), 0);
    assert_null(got.cwd);
    assert_null(got.envp[0]);
    assert_int_equal(got.group_count, 0);
    assert_false(got.set_ids || got.terminal || got.ctrl_c_ends || got.escalate);
    child_spec_release(&got);
}

/* @return whether a spec is read as it was written. */
static bool goes_through(const struct child_spec *spec)
{
    struct child_spec got;
    struct crown_error err;
    int fd = child_spec_write(spec, &err);
    if (fd < 0)
        return false;
    memset(&got, 0xff, sizeof(got));
    const int result = child_spec_read(fd, &got, &err);
    assert_int_equal(close(fd), 0);
    if (result < 0) {
        assert_null(got.memory); /* there is nothing to release */
        return false;
    }
    assert_int_equal(got.stop_signal, spec->stop_signal);
    assert_int_equal(got.group_count, spec->group_count);
    assert_memory_equal(got.groups, spec->groups, spec->group_count * sizeof(gid_t));
    child_spec_release(&got);
    return true;
}

static void there_are_signals_from_1_to_64(void **state)
{
    (void)state;
    struct child_spec spec = full_spec();
    for (spec.stop_signal = 0; spec.stop_signal <= 65; spec.stop_signal++)
        assert_int_equal(goes_through(&spec), spec.stop_signal > 0 && spec.stop_signal < 65);
}

static void a_user_may_be_in_1024_groups(void **state)
{
    (void)state;
    static gid_t many[1025];
    struct crown_error err;
    struct child_spec spec = full_spec();
    for (unsigned i = 0; i < 1025; i++)
        many[i] = i + 1;
    spec.groups = many;
    for (spec.group_count = 0; spec.group_count < 3; spec.group_count++)
        assert_true(goes_through(&spec));
    spec.group_count = 1024;
    assert_true(goes_through(&spec));
    spec.group_count = 1025;
    assert_int_equal(child_spec_write(&spec, &err), -1);
    assert_string_equal(err.message, "run /bin/app: its user is in 1025 groups, at most 1024 fit");
}

static void what_cannot_be_written_whole_leaves_no_descriptor(void **state)
{
    (void)state;
    struct rlimit before;
    struct crown_error err;
    struct child_spec spec = full_spec();
    const int next = dup(STDERR_FILENO);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit little = {100, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    const int written = child_spec_write(&spec, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(written, -1);
    assert_string_equal(err.message, "describe the child: No space left on device");
    assert_int_equal(dup(STDERR_FILENO), next);
    assert_int_equal(close(next), 0);
}

static void the_block_is_sealed(void **state)
{
    (void)state;
    struct child_spec spec = full_spec();
    struct crown_error err;
    int fd = child_spec_write(&spec, &err);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 1), -1);
    assert_int_equal(close(fd), 0);
}

static void too_much_text_is_refused_with_its_size(void **state)
{
    (void)state;
    size_t size = 3u << 20;
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    char *const large[] = {"app", text, NULL};
    struct child_spec spec = full_spec();
    struct crown_error err;
    spec.argv = large;
    assert_int_equal(child_spec_write(&spec, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "run app: "));
    free(text);
}

static void too_many_words_are_refused_with_their_number(void **state)
{
    (void)state;
    enum { MANY = 300000 };
    char word[] = "";
    char **many = calloc(MANY + 1, sizeof(*many));
    assert_non_null(many);
    for (int i = 0; i < MANY; i++)
        many[i] = word;
    struct child_spec spec = full_spec();
    struct crown_error err;
    spec.argv = many;
    assert_int_equal(child_spec_write(&spec, &err), -1);
    assert_non_null(strstr(err.message, "300000 words"));
    free((void *)many);
}

static int memfd_of(const char *bytes, size_t size)
{
    int fd = memfd_create("block", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    return fd;
}

static size_t block_of(const struct child_spec *spec, char *bytes, size_t room)
{
    struct crown_error err;
    struct stat info;
    int fd = child_spec_write(spec, &err);
    assert_int_equal(fstat(fd, &info), 0);
    assert_true((size_t)info.st_size <= room);
    assert_int_equal(pread(fd, bytes, (size_t)info.st_size, 0), info.st_size);
    assert_int_equal(close(fd), 0);
    return (size_t)info.st_size;
}

static void a_block_of_any_other_length_is_refused(void **state)
{
    (void)state;
    char bytes[1024] = {0};
    struct child_spec spec = full_spec();
    struct child_spec got;
    struct crown_error err;
    size_t size = block_of(&spec, bytes, sizeof(bytes) - 1);
    for (size_t length = 0; length <= size + 1; length++) {
        if (length == size)
            continue;
        int fd = memfd_of(bytes, length);
        assert_int_equal(child_spec_read(fd, &got, &err), -1);
        assert_int_equal(err.code, ERROR_PROTOCOL);
        assert_int_equal(close(fd), 0);
    }
}

/* What a damaged block still says is not known; that it is read without harm is what the sanitizers
 * see. */
static void a_damaged_block_is_refused_or_read_within_its_bounds(void **state)
{
    (void)state;
    char original[1024];
    struct child_spec spec = full_spec();
    struct random random;
    unsigned refused = 0;
    size_t size = block_of(&spec, original, sizeof(original));
    random_seed(&random, 11);
    for (int round = 0; round < 3000; round++) {
        char bytes[1024];
        struct child_spec got;
        struct crown_error err;
        memcpy(bytes, original, size);
        for (uint64_t i = 1 + random_below(&random, 3); i > 0; i--)
            bytes[random_below(&random, size)] = (char)random_next(&random);
        int fd = memfd_of(bytes, size);
        if (child_spec_read(fd, &got, &err) == 0) {
            for (char *const *s = got.argv; *s != NULL; s++)
                assert_true(strlen(*s) < size);
            assert_true(strlen(got.label) < size);
            assert_true(got.hold_count <= CHILD_MAX_HOLD);
            child_spec_release(&got);
        } else {
            assert_int_equal(err.code, ERROR_PROTOCOL);
            refused++;
        }
        assert_int_equal(close(fd), 0);
    }
    assert_true(refused > 0);
}

/* A keeper lives as long as its command, and there may be a hundred thousand. */
static void what_was_read_is_given_back(void **state)
{
    (void)state;
    const struct child_spec written = full_spec();
    struct child_spec spec;
    int fd = child_spec_write(&written, NULL);
    assert_true(fd >= 0);
    assert_int_equal(child_spec_read(fd, &spec, NULL), 0);
    const void *page = spec.argv;
    assert_true(pages_has(page));
    child_spec_release(&spec);
    assert_false(pages_has(page));
    assert_null(spec.argv);
    assert_null(spec.envp);
    assert_null(spec.label);
    assert_null(spec.groups);
    child_spec_release(&spec); /* twice is once */
    assert_int_equal(close(fd), 0);
}

static void what_a_scope_holds_is_held_by_the_child(void **state)
{
    (void)state;
    const struct scope_hold hold = {.fds = {5, -1, 7}};
    struct child_spec spec = {.hold_count = 0};
    child_spec_hold(&spec, &hold);
    assert_int_equal(spec.hold_count, 2);
    assert_int_equal(spec.hold_fd[0], 5);
    assert_int_equal(spec.hold_fd[1], 7);
    spec.hold_count = CHILD_MAX_HOLD - 1;
    child_spec_hold(&spec, &hold);
    assert_int_equal(spec.hold_count, CHILD_MAX_HOLD);
    assert_int_equal(spec.hold_fd[CHILD_MAX_HOLD - 1], 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_survives_the_way_to_the_keeper),
        cmocka_unit_test(what_may_be_left_out_stays_out),
        cmocka_unit_test(there_are_signals_from_1_to_64),
        cmocka_unit_test(a_user_may_be_in_1024_groups),
        cmocka_unit_test(what_cannot_be_written_whole_leaves_no_descriptor),
        cmocka_unit_test(the_block_is_sealed),
        cmocka_unit_test(what_a_scope_holds_is_held_by_the_child),
        cmocka_unit_test(what_was_read_is_given_back),
        cmocka_unit_test(too_much_text_is_refused_with_its_size),
        cmocka_unit_test(too_many_words_are_refused_with_their_number),
        cmocka_unit_test(a_block_of_any_other_length_is_refused),
        cmocka_unit_test(a_damaged_block_is_refused_or_read_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which descriptors stay open, also where the kernel does not close ranges of them. */
#include "process/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "denied.h"

#define MOST 64 /* descriptors that are looked at */
#define OPEN "3 4 5 6 7 8 9 10 11 12 40 61 63"

enum ways { RANGES, ONE_BY_ONE, BELOW_THE_LIMIT, WAYS };

static void parse(const char *text, bool fds[MOST])
{
    memset(fds, 0, MOST * sizeof(*fds));
    for (char *end; *text != '\0'; text = end)
        fds[strtol(text, &end, 10)] = true;
}

/* 0, 1 and 2, and those of OPEN; nothing else. */
static bool open_all(void)
{
    bool wanted[MOST];
    parse(OPEN, wanted);
    for (int fd = 3; fd < 1024; fd++)
        (void)close(fd);
    for (int fd = 0; fd < MOST; fd++)
        if ((fd < 3 || wanted[fd]) && fcntl(fd, F_GETFD) < 0) {
            int opened = open("/dev/null", O_RDWR); /* one that stays across an exec */
            if (opened != fd && (dup2(opened, fd) != fd || close(opened) != 0))
                return false;
        }
    return true;
}

/* @return whether this kernel has been kept from what the way does without. */
static bool go(enum ways way)
{
    const struct rlimit limit = {MOST, MOST};
    if (way == RANGES)
        return true;
    if (!deny_call(SYS_close_range, way == ONE_BY_ONE ? ENOSYS : EPERM))
        return false;
    return way == ONE_BY_ONE ||
           (setrlimit(RLIMIT_NOFILE, &limit) == 0 && deny_call(SYS_openat, EMFILE));
}

enum { AS_WANTED, OTHERWISE, NOT_HERE };

/* In a process of its own, since the test's descriptors are gone then. */
static int in_a_child(int (*play)(const void *what, enum ways way), const void *what, enum ways way)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_all() && go(way) ? play(what, way) : NOT_HERE);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

struct kept {
    const char *keep;
    const char *open; /* afterwards, besides 0, 1 and 2 */
};

static int keep(const void *what, enum ways way)
{
    const struct kept *kept = what;
    bool wanted[MOST];
    (void)way;
    int list[MOST];
    unsigned count = 0;
    char *end;
    for (const char *text = kept->keep; *text != '\0'; text = end)
        list[count++] = (int)strtol(text, &end, 10);
    parse(kept->open, wanted);
    fds_close_except(list, count);
    for (int fd = 0; fd < MOST; fd++)
        if ((fcntl(fd, F_GETFD) >= 0) != (fd < 3 || wanted[fd]))
            return OTHERWISE;
    return AS_WANTED;
}

static void all_but_some_are_closed(void **state)
{
    (void)state;
    static const struct kept table[] = {
        {"", ""},
        {"3", "3"},
        {"4", "4"},
        {"5", "5"},
        {"1", ""},
        {"2 6", "6"},
        {"63", "63"},
        {"9 4", "4 9"},
        {"5 6", "5 6"},
        {"6 6", "6"},
        {"61 3 11", "3 11 61"},
        {"12 10 7 5 3", "3 5 7 10 12"},
        {"50", ""}, /* it was not open */
    };
    for (int way = RANGES; way < WAYS; way++)
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
            if (in_a_child(keep, &table[i], way) == OTHERWISE)
                fail_msg("case %zu, way %d", i, way);
}

static int mark(const void *what, enum ways way)
{
    bool wanted[MOST];
    (void)what;
    (void)way;
    parse(OPEN, wanted);
    fds_close_at_exec();
    for (int fd = 0; fd < MOST; fd++)
        if (fcntl(fd, F_GETFD) != (fd < 3 ? 0 : wanted[fd] ? FD_CLOEXEC : -1))
            return OTHERWISE;
    return AS_WANTED;
}

static void none_but_the_standard_streams_outlives_an_exec(void **state)
{
    (void)state;
    for (int way = RANGES; way < WAYS; way++)
        if (in_a_child(mark, NULL, way) == OTHERWISE)
            fail_msg("way %d", way);
}

static int standard(const void *what, enum ways way)
{
    const char *closed = what;
    (void)way;
    for (const char *one = closed; *one != '\0'; one++)
        (void)close(*one - '0');
    if (fds_open_standard() != 0)
        return OTHERWISE;
    for (int fd = 0; fd < MOST; fd++)
        if (fd < 3 && fcntl(fd, F_GETFD) != 0)
            return OTHERWISE;
    bool wanted[MOST];
    parse(OPEN, wanted);
    for (int fd = 3; fd < MOST; fd++)
        if ((fcntl(fd, F_GETFD) >= 0) != wanted[fd])
            return OTHERWISE;
    return AS_WANTED;
}

static void the_standard_streams_are_open_and_no_other(void **state)
{
    (void)state;
    static const char *const closed[] = {"", "0", "1", "2", "01", "02", "12", "012"};
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        if (in_a_child(standard, closed[i], RANGES) != AS_WANTED)
            fail_msg("without %s", closed[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_but_some_are_closed),
        cmocka_unit_test(none_but_the_standard_streams_outlives_an_exec),
        cmocka_unit_test(the_standard_streams_are_open_and_no_other),
    };
    return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}

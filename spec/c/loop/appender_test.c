#include "loop/appender.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"

#define PATIENCE_MS 20000

static struct loop *loop;
static char directory[64], path[96], older[128], log_path[128];

static int open_all(void **state)
{
    (void)state;
    struct crown_error err;
    loop = loop_new(&err);
    (void)snprintf(directory, sizeof(directory), "/tmp/crown-appender-XXXXXX");
    if (loop == NULL || mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/lines", directory);
    (void)snprintf(older, sizeof(older), "%s.1", path);
    (void)snprintf(log_path, sizeof(log_path), "%s.log", path);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    loop_free(loop);
    (void)unlink(path);
    (void)unlink(older);
    (void)unlink(log_path);
    return rmdir(directory);
}

static void stop_gathering(struct loop_deadline *deadline)
{
    (void)deadline;
    loop_stop(loop);
}

/* Until what was added is with the thread. */
static void turn_past_gathering(void)
{
    struct loop_deadline enough = {.fire = stop_gathering};
    loop_at(loop, &enough, loop_now(loop) + NS_PER_S / 5);
    loop_run(loop);
}

static const char *text_of(const char *file)
{
    static char text[1024];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t size = read(fd, text, sizeof(text) - 1);
    assert_true(size >= 0);
    assert_int_equal(0, close(fd));
    text[size] = '\0';
    return text;
}

static void put(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(strlen(text), write(fd, text, strlen(text)));
    assert_int_equal(0, close(fd));
}

static void add(struct appender *appender, const char *text)
{
    appender_add(appender, text, strlen(text));
}

static void what_waits_is_written_at_the_end(void **state)
{
    (void)state;
    struct appender *appender = appender_new(loop, path, 1000);
    assert_non_null(appender);
    add(appender, "a\n");
    add(appender, "b\n");
    appender_close(appender);
    assert_string_equal("a\nb\n", text_of(path));
}

static void a_line_is_written_though_the_loop_does_not_turn(void **state)
{
    (void)state;
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    struct appender *appender = appender_new(loop, path, 1000);
    struct stat found = {0};
    assert_non_null(appender);
    add(appender, "a\n");
    for (int i = 0; i < PATIENCE_MS && (stat(path, &found) < 0 || found.st_size == 0); i++)
        assert_int_equal(0, nanosleep(&pause, NULL));
    assert_string_equal("a\n", text_of(path));
    add(appender, "b\n");
    add(appender, "c\n");
    appender_close(appender);
    assert_string_equal("a\nb\nc\n", text_of(path));
}

static void a_long_file_is_kept_once(void **state)
{
    (void)state;
    put(path, "long enough\n");
    struct appender *appender = appender_new(loop, path, 5);
    assert_non_null(appender);
    add(appender, "a\n");
    appender_close(appender);
    assert_string_equal("a\n", text_of(path));
    assert_string_equal("long enough\n", text_of(older));
}

/* Whether somebody waits for a lock on it. */
static bool is_waited_for(ino_t inode)
{
    char line[256], name[32];
    bool found = false;
    FILE *locks = fopen("/proc/locks", "re");
    assert_non_null(locks);
    (void)snprintf(name, sizeof(name), ":%ju ", (uintmax_t)inode);
    while (!found && fgets(line, sizeof(line), locks) != NULL)
        found = strstr(line, "->") != NULL && strstr(line, name) != NULL;
    assert_int_equal(0, fclose(locks));
    return found;
}

static void of_two_who_keep_a_file_the_second_loses_none(void **state)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct stat info;
    (void)state;
    put(path, "long enough\n");
    struct appender *appender = appender_new(loop, path, 5);
    assert_non_null(appender);
    int other = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(other >= 0);
    assert_int_equal(0, fstat(other, &info));
    assert_int_equal(0, flock(other, LOCK_EX));
    add(appender, "a\n");
    turn_past_gathering();
    for (int i = 0; i < PATIENCE_MS && !is_waited_for(info.st_ino); i++)
        assert_int_equal(0, nanosleep(&pause, NULL));
    assert_true(is_waited_for(info.st_ino));
    assert_int_equal(0, rename(path, older));
    put(path, "b\n");
    assert_int_equal(0, close(other));
    appender_close(appender);
    assert_string_equal("b\na\n", text_of(path));
    assert_string_equal("long enough\n", text_of(older));
}

/* Lines, while this user may have no other process: then it may again. Only the first failure is
 * said. */
static void play_one_without_threads(void) __attribute__((noreturn));
static void play_one_without_threads(void)
{
    const uid_t user = 1000000 + (uid_t)getpid();
    struct rlimit processes;
    struct crown_error err;
    loop = loop_new(&err);
    log_set_level(LOG_DEBUG);
    put(log_path, "");
    if (getrlimit(RLIMIT_NPROC, &processes) < 0)
        _exit(9);
    processes.rlim_cur = 1;
    if (loop == NULL || freopen(log_path, "a", stderr) == NULL ||
        chown(directory, user, user) < 0 || chown(log_path, user, user) < 0 ||
        setrlimit(RLIMIT_NPROC, &processes) < 0 ||
        (geteuid() == 0 && setresuid(user, user, user) < 0))
        _exit(9);
    struct appender *appender = appender_new(loop, path, 1000);
    add(appender, "a\n");
    turn_past_gathering(); /* it is tried again meanwhile */
    add(appender, "b\n");
    processes.rlim_cur = processes.rlim_max;
    if (setrlimit(RLIMIT_NPROC, &processes) < 0)
        _exit(9);
    appender_close(appender);
    _exit(0); /* the log is written at once */
}

static void lines_wait_for_a_thread_and_that_is_said_once(void **state)
{
    int status;
    (void)state;
    if (geteuid() != 0)
        skip(); /* the limit counts all processes of a user */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        play_one_without_threads();
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_int_equal(0, status);
    assert_string_equal("a\nb\n", text_of(path));
    const char *said = strstr(text_of(log_path), "start a thread");
    assert_non_null(said);
    assert_null(strstr(said + 1, "start a thread"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_waits_is_written_at_the_end, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_line_is_written_though_the_loop_does_not_turn, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_long_file_is_kept_once, open_all, close_all),
        cmocka_unit_test_setup_teardown(of_two_who_keep_a_file_the_second_loses_none, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(lines_wait_for_a_thread_and_that_is_said_once, open_all,
                                        close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

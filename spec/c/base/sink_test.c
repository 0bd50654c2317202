/* Standard error that nobody reads: no line of the log waits for it, and what was lost is counted.
 */
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

#define PATIENCE_S 20 /* who waits for ever is ended: far more than anything here takes */
#define PAGE 4096

static int original = -1;
static int ends[2]; /* where standard error can be read, and a copy of it */

static void redirect(void)
{
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
}

static int save(void **state)
{
    (void)state;
    (void)alarm(PATIENCE_S);
    original = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    return original < 0 ? -1 : 0;
}

static int restore(void **state)
{
    (void)state;
    int result = dup2(original, STDERR_FILENO) < 0 ? -1 : 0;
    return close(original) < 0 || close(ends[0]) < 0 || close(ends[1]) < 0 ? -1 : result;
}

/* Writes until there is no room; afterwards writes wait again. */
static void fill(void)
{
    char page[PAGE];
    int flags = fcntl(ends[1], F_GETFL);
    (void)memset(page, '.', sizeof(page));
    assert_int_equal(fcntl(ends[1], F_SETFL, flags | O_NONBLOCK), 0);
    while (write(ends[1], page, sizeof(page)) > 0)
        continue;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fcntl(ends[1], F_SETFL, flags), 0);
}

static void redirect_to_pipe(void)
{
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    redirect();
}

static void redirect_to_full_pipe(void)
{
    redirect_to_pipe();
    fill();
}

/* @return all that can be read now. */
static const char *read_all(void)
{
    static char text[1 << 20];
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    return text;
}

/* The reader has come back. */
static void assert_takes_a_line_again(void)
{
    (void)read_all();
    assert_true(sink_write("again\n", 6));
    assert_string_equal(read_all(), "again\n");
}

static void a_line_is_written_whole(void **state)
{
    (void)state;
    redirect_to_pipe();
    assert_true(sink_write("one\n", 4));
    assert_true(sink_write("two\n", 4));
    assert_string_equal(read_all(), "one\ntwo\n");
}

static void a_full_pipe_takes_nothing_and_holds_up_nobody(void **state)
{
    (void)state;
    redirect_to_full_pipe();
    assert_false(sink_write("lost\n", 5));
    assert_takes_a_line_again();
    /* The flags of the file are others' too. */
    assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
}

static void what_a_pipe_has_no_room_for_comes_before_the_next_line(void **state)
{
    (void)state;
    char line[SINK_LINE_MOST];
    char page[PAGE];
    redirect_to_full_pipe();
    assert_int_equal(read(ends[0], page, sizeof(page)), sizeof(page)); /* room for half a line */
    (void)memset(line, 'a', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    assert_true(sink_write(line, sizeof(line)));
    assert_false(sink_write("no\n", 3));
    const char *text = strchr(read_all(), 'a');
    assert_non_null(text);
    assert_int_equal(strspn(text, "a"), PAGE);
    assert_true(sink_write("next\n", 5));
    text = read_all();
    assert_int_equal(strspn(text, "a"), PAGE - 1);
    assert_string_equal(text + PAGE - 1, "\nnext\n");
}

static void a_full_socket_holds_up_nobody(void **state)
{
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    redirect();
    fill();
    assert_false(sink_write("lost\n", 5));
    assert_takes_a_line_again();
}

static void another_file_is_noticed(void **state)
{
    (void)state;
    int first[2];
    assert_int_equal(pipe(first), 0);
    assert_int_equal(dup2(first[1], STDERR_FILENO), STDERR_FILENO);
    assert_true(sink_write("there\n", 6));
    redirect_to_pipe();
    assert_true(sink_write("here\n", 5));
    assert_string_equal(read_all(), "here\n");
    assert_int_equal(close(first[0]) | close(first[1]), 0);
}

/* One that may not be opened anew: a pipe of root's, for somebody else. */
static int write_as_nobody(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(PATIENCE_S);
        if (setresuid(65534, 65534, 65534) < 0)
            _exit(9);
        _exit(sink_write("nobody\n", 7));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void another_user_s_full_pipe_holds_up_nobody(void **state)
{
    (void)state;
    redirect_to_full_pipe();
    assert_int_equal(write_as_nobody(), 0);
    (void)read_all();
    assert_int_equal(write_as_nobody(), 1);
    assert_string_equal(read_all(), "nobody\n");
}

static void lines_that_were_lost_are_counted_by_the_next(void **state)
{
    (void)state;
    redirect_to_full_pipe();
    for (int i = 0; i < 3; i++)
        log_warn("lost");
    (void)read_all();
    log_warn("here");
    log_warn("there");
    const char *text = read_all();
    assert_non_null(strstr(text, "warn  log.dropped lines=3\n"));
    const char *here = strstr(text, "warn  here\n");
    assert_true(here != NULL && here > strstr(text, "log.dropped"));
    assert_null(strstr(here, "log.dropped")); /* said once */
}

static void redirect_to_file(void)
{
    char path[] = "/tmp/crown-sink-XXXXXX";
    ends[1] = mkstemp(path);
    assert_true(ends[1] >= 0);
    ends[0] = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(ends[0] >= 0);
    assert_int_equal(unlink(path), 0);
    redirect();
}

/* A thread that writes may be late on a busy machine. */
static void await(const char *wanted)
{
    char text[PAGE];
    do { /* or the alarm ends it */
        ssize_t got = pread(ends[0], text, sizeof(text) - 1, 0);
        text[got < 0 ? 0 : got] = '\0';
    } while (strcmp(text, wanted) != 0);
}

/* The supervisor has logged when it forks the runtime anew: a thread that writes is not forked. */
static void a_fork_writes_to_a_file_by_a_thread_of_its_own(void **state)
{
    (void)state;
    redirect_to_file();
    assert_true(sink_write("before\n", 7));
    await("before\n");
    assert_int_equal(fflush(NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(PATIENCE_S);
        exit(sink_write("fork\n", 5) && sink_write("again\n", 6) ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(sink_write("after\n", 6));
    await("before\nfork\nagain\nafter\n");
}

/* A thread that writes goes on with the file that it has begun with: so each of these has a process
 * of its own, which ends as the program does. */
static void run_alone(bool (*body)(void))
{
    int status = -1;
    redirect_to_file();
    assert_int_equal(fflush(NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(PATIENCE_S);
        exit(body() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* From here on a file takes so many bytes, as on a disk that is full. */
static bool limit_files(rlim_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
        return false;
    limit.rlim_cur = bytes;
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static bool write_while_full(void)
{
    struct stat file = {.st_size = 0};
    bool taken = limit_files(2) && sink_write("one\n", 4) && sink_write("two\n", 4);
    while (file.st_size < 2) /* or the alarm ends it */
        taken = fstat(ends[0], &file) == 0 && taken;
    return limit_files(RLIM_INFINITY) && sink_write("three\n", 6) && taken;
}

static void lines_that_a_file_does_not_take_come_later_in_order(void **state)
{
    (void)state;
    run_alone(write_while_full);
    assert_string_equal(read_all(), "one\ntwo\nthree\n");
}

static bool write_without_end(void)
{
    char line[1024];
    unsigned taken = 0;
    (void)memset(line, 'a', sizeof(line));
    if (!limit_files(0))
        return false;
    while (taken < 1000 && sink_write(line, sizeof(line)))
        taken++;
    return taken >= 64 && taken <= 128;
}

static void lines_wait_for_a_file_up_to_a_bound(void **state)
{
    (void)state;
    run_alone(write_without_end);
}

static bool write_at_the_end(void)
{
    bool taken = limit_files(0);
    for (int i = 0; i < 1000; i++)
        taken = sink_write("line\n", 5) && taken;
    return limit_files(RLIM_INFINITY) && taken;
}

static void the_end_of_a_process_waits_for_its_lines(void **state)
{
    (void)state;
    run_alone(write_at_the_end);
    assert_int_equal(strlen(read_all()), 1000 * 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, save, restore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_is_written_whole),
        TEST(a_full_pipe_takes_nothing_and_holds_up_nobody),
        TEST(what_a_pipe_has_no_room_for_comes_before_the_next_line),
        TEST(a_full_socket_holds_up_nobody),
        TEST(another_file_is_noticed),
        TEST(another_user_s_full_pipe_holds_up_nobody),
        TEST(lines_that_were_lost_are_counted_by_the_next),
        TEST(a_fork_writes_to_a_file_by_a_thread_of_its_own),
        TEST(lines_that_a_file_does_not_take_come_later_in_order),
        TEST(lines_wait_for_a_file_up_to_a_bound),
        TEST(the_end_of_a_process_waits_for_its_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

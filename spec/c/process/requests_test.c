/* What a signal asks of the supervisor, by what came before. */
#include "process/requests.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define START_NS (1000 * NS_PER_S)

static void an_interrupt_that_comes_again_is_one_for_half_a_second(void **state)
{
    (void)state;
    static const struct {
        int64_t after_ns;
        enum request asks;
    } table[] = {
        {0, REQUEST_STOP},
        {NS_PER_US, REQUEST_STOP},
        {499 * NS_PER_MS, REQUEST_STOP},
        {500 * NS_PER_MS, REQUEST_END},
        {NS_PER_S, REQUEST_END},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct requests requests = {.interrupted = false};
        assert_int_equal(requests_signal(&requests, SIGINT, START_NS), REQUEST_STOP);
        assert_int_equal(requests_signal(&requests, SIGINT, START_NS + table[i].after_ns),
                         table[i].asks);
    }
}

/* Somebody who presses Ctrl-C without a pause is impatient. */
static void the_half_second_counts_from_the_first(void **state)
{
    (void)state;
    struct requests requests = {.interrupted = false};
    assert_int_equal(requests_signal(&requests, SIGINT, START_NS), REQUEST_STOP);
    assert_int_equal(requests_signal(&requests, SIGINT, START_NS + 300 * NS_PER_MS), REQUEST_STOP);
    assert_int_equal(requests_signal(&requests, SIGINT, START_NS + 600 * NS_PER_MS), REQUEST_END);
}

static void a_term_asks_for_order_whatever_came_before(void **state)
{
    (void)state;
    struct requests requests = {.interrupted = false};
    assert_int_equal(requests_signal(&requests, SIGTERM, START_NS), REQUEST_STOP);
    assert_int_equal(requests_signal(&requests, SIGTERM, START_NS + NS_PER_S), REQUEST_STOP);
    assert_false(requests.interrupted);
    assert_int_equal(requests_signal(&requests, SIGINT, START_NS + 2 * NS_PER_S), REQUEST_STOP);
    assert_true(requests.interrupted);
    assert_int_equal(requests_signal(&requests, SIGTERM, START_NS + 4 * NS_PER_S), REQUEST_STOP);
    assert_int_equal(requests_signal(&requests, SIGINT, START_NS + 4 * NS_PER_S), REQUEST_END);
}

static void a_hangup_is_a_terminal_s_or_nothing(void **state)
{
    (void)state;
    struct requests daemon = {.terminal = -1};
    assert_int_equal(requests_signal(&daemon, SIGHUP, START_NS), REQUEST_NONE);
    struct requests person = {.from_terminal = true, .terminal = 1};
    assert_int_equal(requests_signal(&person, SIGHUP, START_NS), REQUEST_STOP);
    assert_int_equal(requests_hangup(&person), REQUEST_STOP);
    assert_int_equal(person.terminal, -1);
    assert_int_equal(requests_signal(&person, SIGHUP, START_NS + NS_PER_S), REQUEST_STOP);
    assert_false(person.interrupted);
}

static void who_is_to_keep_on_hears_of_no_hangup(void **state)
{
    (void)state;
    struct requests kept = {.from_terminal = true, .terminal = 1};
    requests_keep(&kept);
    assert_int_equal(kept.terminal, -1);
    assert_int_equal(requests_signal(&kept, SIGHUP, START_NS), REQUEST_NONE);
    assert_int_equal(requests_hangup(&kept), REQUEST_NONE);
    assert_int_equal(requests_signal(&kept, SIGTERM, START_NS), REQUEST_STOP);
}

/* How a process was started. */
struct start {
    const char *streams; /* where 0, 1 and 2 lead: the 't'erminal, another 'p'ty, /dev/'n'ull, or
                            nowhere: '-' */
    bool terminal;       /* it has one */
    bool nohup;
    bool inner; /* in a PID namespace, where nobody sees who leads the session */
    bool from_terminal;
    int watched;
};

static int open_pty(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC); /* open until this process ends */
    bool open = master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0;
    return open ? ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY) : -1;
}

static int stream_of(const struct start *start, int which, int terminal)
{
    switch (start->streams[which]) {
    case 't':
        return terminal;
    case 'p':
        return open_pty();
    default:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    }
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 64; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* @return 0: as it should be; 1: not. Others say 2: it cannot be played here. */
static int look(const struct start *start)
{
    struct requests requests = {.interrupted = true};
    unsigned before = open_descriptors();
    requests_init(&requests);
    return requests.from_terminal != start->from_terminal || requests.terminal != start->watched ||
           requests.interrupted || open_descriptors() != before;
}

static int look_within(const struct start *start)
{
    if (!start->inner)
        return look(start);
    if (unshare(CLONE_NEWPID) != 0)
        return 2;
    pid_t pid = fork();
    if (pid == 0)
        _exit(look(start));
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int play(const struct start *start)
{
    if (setsid() < 0)
        return 2;
    int terminal = open_pty();
    if (terminal < 0 || (start->terminal && ioctl(terminal, TIOCSCTTY, 0) != 0))
        return 2;
    if (signal(SIGHUP, start->nohup ? SIG_IGN : SIG_DFL) == SIG_ERR)
        return 2;
    for (int i = 0; i < 3; i++)
        if (start->streams[i] != '-' && dup2(stream_of(start, i, terminal), i) != i)
            return 2;
    for (int i = 0; i < 3; i++)
        if (start->streams[i] == '-' && close(i) != 0)
            return 2;
    return look_within(start);
}

static void the_terminal_is_watched_by_the_first_stream_that_leads_there(void **state)
{
    (void)state;
    static const struct start table[] = {
        {"ttt", .terminal = true, .from_terminal = true, .watched = 0},
        {"ntt", .terminal = true, .from_terminal = true, .watched = 1},
        {"nnt", .terminal = true, .from_terminal = true, .watched = 2},
        {"tnn", .terminal = true, .from_terminal = true, .watched = 0},
        {"nnn", .terminal = true, .from_terminal = true, .watched = -1},
        {"pnt", .terminal = true, .from_terminal = true, .watched = 2},
        {"-tt", .terminal = true, .from_terminal = true, .watched = 1},
        {"tt-", .terminal = true, .from_terminal = true, .watched = 0},
        {"ttt", .terminal = true, .inner = true, .from_terminal = true, .watched = 0},
        {"ttt", .terminal = true, .nohup = true, .from_terminal = false, .watched = -1},
        {"ppp", .terminal = false, .from_terminal = false, .watched = -1},
        {"nnn", .terminal = false, .nohup = true, .from_terminal = false, .watched = -1},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(play(&table[i]));
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 1)
            fail_msg("start %zu, streams %s", i, table[i].streams);
        else if (WEXITSTATUS(status) != 0)
            print_message("start %zu cannot be played here\n", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interrupt_that_comes_again_is_one_for_half_a_second),
        cmocka_unit_test(the_half_second_counts_from_the_first),
        cmocka_unit_test(a_term_asks_for_order_whatever_came_before),
        cmocka_unit_test(a_hangup_is_a_terminal_s_or_nothing),
        cmocka_unit_test(who_is_to_keep_on_hears_of_no_hangup),
        cmocka_unit_test(the_terminal_is_watched_by_the_first_stream_that_leads_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A runtime's last will, between its two ends; the store is the other end of a socket. */
#include "process/will.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "descriptors.h"

#define MESSAGE "free all"

static struct {
    int supervisor; /* its end of the line */
    struct link *link;
    struct will will;
    struct wills wills;
    int socket, store; /* the runtime's connection */
    int64_t now_ns;
} all;

int64_t __wrap_clock_monotonic_ns(void);
int64_t __wrap_clock_monotonic_ns(void)
{
    return all.now_ns;
}

static int open_all(void **state)
{
    struct crown_error err;
    int line[2], connection[2];
    (void)state;
    memset(&all.wills, 0, sizeof(all.wills)); /* 0 is standard input: see close_all */
    wills_init(&all.wills);
    all.now_ns = 1000 * NS_PER_S;
    if (wire_pair(line, &err) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, connection) < 0)
        return -1;
    all.supervisor = line[0];
    all.link = link_new(line[1], &err);
    all.socket = connection[0];
    all.store = connection[1];
    return will_open(&all.will, all.link, &err);
}

static int close_all(void **state)
{
    (void)state;
    assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    will_close(&all.will);
    link_free(all.link);
    (void)close(all.supervisor);
    (void)close(all.store);
    return 0;
}

static void leave(void)
{
    struct crown_error err;
    assert_int_equal(will_leave(&all.will, all.socket, MESSAGE, strlen(MESSAGE), &err), 0);
}

/* What the supervisor reads on its line. */
static void hear(void)
{
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0;
    while (wire_receive(all.supervisor, &message, fds, &nfds, NULL) > 0) {
        assert_int_equal(message.type, WIRE_WILL);
        nfds = wills_take(&all.wills, message.id, fds, nfds);
        for (unsigned i = 0; i < nfds; i++)
            (void)close(fds[i]);
    }
}

static void die(void)
{
    hear();
    (void)close(all.socket);
    wills_execute(&all.wills);
}

/* @return how many bytes came; 0 at the end of the connection, -1 when there are none. */
static ssize_t store_reads(char *text, size_t size)
{
    memset(text, 0, size);
    return recv(all.store, text, size - 1, MSG_DONTWAIT);
}

static void is_sent_once(void **state)
{
    char text[100];
    (void)state;
    leave();
    die();
    assert_int_equal(store_reads(text, sizeof(text)), strlen(MESSAGE));
    assert_string_equal(text, MESSAGE);
    wills_execute(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), -1);
}

static void is_not_sent_into_the_middle_of_a_message(void **state)
{
    char text[100];
    (void)state;
    leave();
    all.will.paper->midway = 1;
    die();
    assert_int_equal(store_reads(text, sizeof(text)), 0);
}

static void that_is_revoked_leaves_the_connection_to_the_runtime(void **state)
{
    char text[100];
    (void)state;
    leave();
    will_revoke(&all.will);
    die();
    assert_int_equal(store_reads(text, sizeof(text)), 0);
}

static void that_is_revoked_is_not_sent_though_the_supervisor_has_not_heard_of_it(void **state)
{
    char text[100];
    (void)state;
    leave();
    hear();
    will_revoke(&all.will);
    (void)close(all.socket);
    wills_execute(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), 0);
}

/* What stands there may be for the connection before: on that one, it would be sent too late. */
static void is_not_sent_where_the_supervisor_does_not_take_the_next(void **state)
{
    char text[100];
    int next[2];
    struct crown_error err;
    (void)state;
    leave();
    hear();
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, next), 0);
    assert_return_code(shutdown(all.supervisor, SHUT_RDWR), 0);
    assert_int_equal(will_leave(&all.will, next[0], MESSAGE, strlen(MESSAGE), &err), -1);
    assert_int_equal(err.code, ERROR_SYSTEM);
    (void)close(all.socket);
    wills_execute(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), 0);
    (void)close(next[0]);
    (void)close(next[1]);
}

static void of_one_byte_is_sent(void **state)
{
    char text[100];
    struct crown_error err;
    (void)state;
    assert_int_equal(will_leave(&all.will, all.socket, "x", 1, &err), 0);
    die();
    assert_int_equal(store_reads(text, sizeof(text)), 1);
}

static void goes_to_the_latest_connection(void **state)
{
    char text[100];
    int next[2];
    struct crown_error err;
    (void)state;
    leave();
    hear();
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, next), 0);
    assert_int_equal(will_leave(&all.will, next[0], MESSAGE, strlen(MESSAGE), &err), 0);
    (void)close(next[0]);
    die();
    assert_int_equal(store_reads(text, sizeof(text)), 0);
    assert_int_equal(recv(next[1], text, sizeof(text), MSG_DONTWAIT), strlen(MESSAGE));
    (void)close(next[1]);
}

static void is_what_was_left_last_and_told_of_once(void **state)
{
    static const char later[] = "free all, whenever that is";
    char text[100];
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0;
    struct crown_error err;
    (void)state;
    leave();
    hear();
    assert_int_equal(will_leave(&all.will, all.socket, later, strlen(later), &err), 0);
    assert_int_equal(wire_receive(all.supervisor, &message, fds, &nfds, NULL), 0);
    die();
    assert_int_equal(store_reads(text, sizeof(text)), strlen(later));
    assert_string_equal(text, later);
}

static void leaves_the_store_a_moment_to_read_it(void **state)
{
    char text[100];
    (void)state;
    leave();
    assert_true(wills_close_ns(&all.wills) == TIME_NEVER);
    die();
    wills_close(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), strlen(MESSAGE));
    assert_int_equal(store_reads(text, sizeof(text)), -1);
    assert_true(wills_close_ns(&all.wills) == all.now_ns + NS_PER_S);
    all.now_ns += NS_PER_S - 1;
    wills_close(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), -1);
    all.now_ns++;
    wills_close(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), 0);
    assert_true(wills_close_ns(&all.wills) == TIME_NEVER);
}

static void reads_what_the_store_answers_until_it_closes(void **state)
{
    static const char answers[10000];
    struct pollfd supervisor;
    (void)state;
    leave();
    die();
    supervisor = (struct pollfd){.fd = all.wills.sent[0], .events = POLLIN};
    assert_int_equal(send(all.store, answers, sizeof(answers), MSG_DONTWAIT), sizeof(answers));
    wills_close(&all.wills);
    assert_int_equal(poll(&supervisor, 1, 0), 0);
    assert_true(wills_close_ns(&all.wills) != TIME_NEVER);
    assert_return_code(shutdown(all.store, SHUT_WR), 0);
    errno = EAGAIN; /* of an earlier call */
    wills_close(&all.wills);
    assert_true(wills_close_ns(&all.wills) == TIME_NEVER);
    assert_int_equal(all.wills.sent[0], -1);
}

/* The store has more to say after one byte; it has not after it reset the connection. */
static void waits_for_a_store_that_said_a_byte_and_for_none_that_reset(void **state)
{
    (void)state;
    leave();
    die();
    assert_int_equal(send(all.store, "x", 1, MSG_DONTWAIT), 1);
    wills_close(&all.wills);
    wills_close(&all.wills);
    assert_true(wills_close_ns(&all.wills) != TIME_NEVER);
    (void)close(all.store); /* unread: that resets it */
    all.store = -1;
    wills_close(&all.wills);
    assert_true(wills_close_ns(&all.wills) == TIME_NEVER);
}

static void is_read_though_the_next_runtime_leaves_its_own(void **state)
{
    char text[100];
    int next[2];
    struct crown_error err;
    (void)state;
    leave();
    die();
    all.will.socket = -1; /* the next one has left none yet */
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, next), 0);
    assert_int_equal(will_leave(&all.will, next[0], MESSAGE, strlen(MESSAGE), &err), 0);
    hear();
    (void)close(next[0]);
    wills_close(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), strlen(MESSAGE));
    assert_int_equal(store_reads(text, sizeof(text)), -1);
    assert_int_equal(recv(next[1], text, sizeof(text), MSG_DONTWAIT), -1);
    wills_drop(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), 0);
    assert_int_equal(recv(next[1], text, sizeof(text), MSG_DONTWAIT), 0);
    assert_true(wills_close_ns(&all.wills) == TIME_NEVER);
    (void)close(next[1]);
}

static void is_as_long_as_its_paper_at_most(void **state)
{
    static const char zeros[WILL_MOST + 1];
    static char text[WILL_MOST + 2];
    struct crown_error err;
    (void)state;
    assert_int_equal(will_leave(&all.will, all.socket, zeros, WILL_MOST + 1, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_int_equal(will_leave(&all.will, all.socket, zeros, WILL_MOST, &err), 0);
    die();
    assert_int_equal(store_reads(text, sizeof(text)), WILL_MOST);
}

/* Nor does it say anything to the supervisor, to which that would be one more. */
static void that_is_none_is_neither_left_nor_revoked(void **state)
{
    struct crown_error err;
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0;
    (void)state;
    will_revoke(&all.will); /* nothing was left yet */
    assert_int_equal(wire_receive(all.supervisor, &message, fds, &nfds, NULL), 0);
    leave();
    hear();
    will_revoke(&all.will);
    assert_true(wire_receive(all.supervisor, &message, fds, &nfds, NULL) > 0);
    assert_int_equal(message.type, WIRE_WILL);
    assert_int_equal(nfds, 0);
    will_revoke(&all.will);
    assert_int_equal(wire_receive(all.supervisor, &message, fds, &nfds, NULL), 0);
    will_close(&all.will);
    will_close(&all.will);
    will_revoke(&all.will);
    assert_int_equal(will_leave(&all.will, all.socket, MESSAGE, strlen(MESSAGE), &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_int_equal(wire_receive(all.supervisor, &message, fds, &nfds, NULL), 0);
    (void)close(all.socket);
}

static void are_four_at_most(void **state)
{
    struct will more[WILLS_MOST];
    struct crown_error err;
    (void)state;
    for (unsigned i = 0; i < WILLS_MOST - 1; i++)
        assert_return_code(will_open(&more[i], all.link, &err), 0);
    assert_int_equal(will_open(&more[WILLS_MOST - 1], all.link, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    for (unsigned i = 0; i < WILLS_MOST - 1; i++)
        will_close(&more[i]);
    (void)close(all.socket);
}

/* The runtime is dead: nobody else closes anything. */
static void are_sent_to_each_store_and_leave_nothing_open(void **state)
{
    const unsigned before = descriptors_open();
    int stores[WILLS_MOST];
    char text[10];
    (void)state;
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < WILLS_MOST; i++) {
            int ends[2], papers[2];
            assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
            papers[0] = ends[0];
            papers[1] = dup(all.will.fd);
            all.will.paper->length = 2;
            assert_int_equal(wills_take(&all.wills, i, papers, 2), 0);
            stores[i] = ends[1];
        }
        if (turn > 0) /* else the next ones take their place */
            wills_execute(&all.wills);
        wills_close(&all.wills);
        for (unsigned i = 0; i < WILLS_MOST; i++) {
            assert_int_equal(recv(stores[i], text, sizeof(text), MSG_DONTWAIT), turn > 0 ? 2 : -1);
            (void)close(stores[i]);
        }
    }
    assert_int_equal(descriptors_open(), before + WILLS_MOST);
    all.now_ns += NS_PER_S;
    wills_close(&all.wills);
    assert_int_equal(descriptors_open(), before);
    (void)close(all.socket);
}

static void are_closed_unsent_where_the_supervisor_ends(void **state)
{
    const unsigned before = descriptors_open();
    (void)state;
    for (unsigned i = 0; i < WILLS_MOST; i++) {
        int *all_of[] = {&all.wills.sockets[i], &all.wills.papers[i], &all.wills.sent[i]};
        for (unsigned j = 0; j < 3; j++)
            *all_of[j] = dup(all.store);
    }
    wills_drop(&all.wills);
    assert_int_equal(descriptors_open(), before);
    (void)close(all.socket);
}

/* A message of a broken runtime: the others' stay. */
static void that_has_no_number_or_no_paper_is_none(void **state)
{
    char text[100];
    int fds[] = {dup(all.store), dup(all.store)};
    (void)state;
    leave();
    hear();
    assert_int_equal(wills_take(&all.wills, WILLS_MOST, fds, 2), 2);
    assert_int_equal(wills_take(&all.wills, 1, fds, 1), 1);
    assert_int_equal(wills_take(&all.wills, 1, fds, 0), 0);
    assert_int_equal(all.wills.sockets[1], -1);
    (void)close(fds[0]);
    (void)close(fds[1]);
    die();
    assert_int_equal(store_reads(text, sizeof(text)), strlen(MESSAGE));
}

static void that_is_longer_than_its_paper_is_not_sent(void **state)
{
    char text[100];
    (void)state;
    leave();
    all.will.paper->length = WILL_MOST + 1;
    die();
    assert_int_equal(store_reads(text, sizeof(text)), 0);
}

static void takes_its_paper_along_when_it_is_closed(void **state)
{
    struct will more;
    struct crown_error err;
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0;
    const unsigned before = descriptors_open();
    const unsigned mapped = descriptors_mapped("crown-will");
    (void)state;
    assert_int_equal(will_open(&more, all.link, &err), 0);
    assert_int_equal(descriptors_mapped("crown-will"), mapped + 1);
    assert_int_equal(will_leave(&more, all.socket, MESSAGE, strlen(MESSAGE), &err), 0);
    hear();
    will_close(&more);
    assert_true(wire_receive(all.supervisor, &message, fds, &nfds, NULL) > 0);
    assert_int_equal(message.type, WIRE_WILL); /* it is revoked */
    assert_int_equal(message.id, more.id);
    assert_int_equal(nfds, 0);
    wills_drop(&all.wills);
    assert_int_equal(descriptors_open(), before);
    assert_int_equal(descriptors_mapped("crown-will"), mapped);
    (void)close(all.socket);
}

static void that_was_never_opened_is_closed_all_the_same(void **state)
{
    struct will none = {.paper = NULL};
    (void)state;
    const unsigned before = descriptors_open();
    will_revoke(&none);
    will_close(&none);
    assert_int_equal(descriptors_open(), before);
    (void)close(all.socket);
}

/* @return what will_open says under a limit */
static const char *refused_under(int resource, rlim_t most)
{
    static struct crown_error err;
    struct will more;
    struct rlimit was, less;
    assert_return_code(getrlimit(resource, &was), 0);
    less = (struct rlimit){.rlim_cur = most, .rlim_max = was.rlim_max};
    assert_return_code(setrlimit(resource, &less), 0);
    const int opened = will_open(&more, all.link, &err);
    assert_return_code(setrlimit(resource, &was), 0);
    assert_int_equal(opened, -1);
    return err.message;
}

static void without_room_is_told_why(void **state)
{
    const unsigned before = descriptors_open();
    (void)state;
    assert_string_equal(refused_under(RLIMIT_NOFILE, 3),
                        "make room for a last will: Too many open files (ulimit -n, LimitNOFILE=)");
    assert_string_equal(refused_under(RLIMIT_AS, 1),
                        "make room for a last will: Cannot allocate memory");
    assert_int_equal(descriptors_open(), before);
    (void)close(all.socket);
}

#define WILL_TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WILL_TEST(is_sent_once),
        WILL_TEST(is_not_sent_into_the_middle_of_a_message),
        WILL_TEST(that_is_revoked_leaves_the_connection_to_the_runtime),
        WILL_TEST(that_is_revoked_is_not_sent_though_the_supervisor_has_not_heard_of_it),
        WILL_TEST(is_not_sent_where_the_supervisor_does_not_take_the_next),
        WILL_TEST(of_one_byte_is_sent),
        WILL_TEST(goes_to_the_latest_connection),
        WILL_TEST(is_what_was_left_last_and_told_of_once),
        WILL_TEST(leaves_the_store_a_moment_to_read_it),
        WILL_TEST(reads_what_the_store_answers_until_it_closes),
        WILL_TEST(waits_for_a_store_that_said_a_byte_and_for_none_that_reset),
        WILL_TEST(is_read_though_the_next_runtime_leaves_its_own),
        WILL_TEST(is_as_long_as_its_paper_at_most),
        WILL_TEST(that_is_none_is_neither_left_nor_revoked),
        WILL_TEST(are_four_at_most),
        WILL_TEST(are_sent_to_each_store_and_leave_nothing_open),
        WILL_TEST(are_closed_unsent_where_the_supervisor_ends),
        WILL_TEST(that_has_no_number_or_no_paper_is_none),
        WILL_TEST(that_is_longer_than_its_paper_is_not_sent),
        WILL_TEST(takes_its_paper_along_when_it_is_closed),
        WILL_TEST(that_was_never_opened_is_closed_all_the_same),
        WILL_TEST(without_room_is_told_why),
    };
    return cmocka_run_group_tests_name("a last will", tests, NULL, NULL);
}

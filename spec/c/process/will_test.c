/* A runtime's last will, between its two ends; the store is the other end of a socket. */
#include "process/will.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define MESSAGE "free all before 0000000000000000."
#define INSTANT_AT 16

static struct {
    int supervisor; /* its end of the line */
    struct link *link;
    struct will will;
    struct wills wills;
    int socket, store; /* the runtime's connection */
} all;

static int open_all(void **state)
{
    struct crown_error err;
    int line[2], connection[2];
    (void)state;
    wills_init(&all.wills);
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
    will_close(&all.will);
    link_free(all.link);
    (void)close(all.supervisor);
    (void)close(all.store);
    return 0;
}

static void leave(void)
{
    struct crown_error err;
    assert_return_code(
        will_leave(&all.will, all.socket, MESSAGE, strlen(MESSAGE), INSTANT_AT, &err), 0);
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

static void is_sent_once_with_the_instant_of_the_death(void **state)
{
    char text[100];
    (void)state;
    leave();
    int64_t before_us = clock_boottime_ns() / NS_PER_US;
    die();
    assert_int_equal(store_reads(text, sizeof(text)), strlen(MESSAGE));
    assert_memory_equal(text, MESSAGE, INSTANT_AT);
    long long instant_us = strtoll(text + INSTANT_AT, NULL, 10);
    assert_true(instant_us >= before_us && instant_us <= clock_boottime_ns() / NS_PER_US);
    assert_string_equal(text + INSTANT_AT + WILL_INSTANT_DIGITS, ".");
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

static void goes_to_the_latest_connection(void **state)
{
    char text[100];
    int next[2];
    struct crown_error err;
    (void)state;
    leave();
    hear();
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, next), 0);
    assert_return_code(will_leave(&all.will, next[0], MESSAGE, strlen(MESSAGE), INSTANT_AT, &err),
                       0);
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
    assert_return_code(will_leave(&all.will, all.socket, later, strlen(later), 0, &err), 0);
    assert_int_equal(wire_receive(all.supervisor, &message, fds, &nfds, NULL), 0);
    die();
    assert_int_equal(store_reads(text, sizeof(text)), strlen(later));
    assert_string_equal(text, later);
}

static void leaves_the_store_a_moment_to_read_it(void **state)
{
    char text[100];
    struct pollfd store = {.fd = all.store, .events = POLLIN};
    (void)state;
    leave();
    assert_true(wills_close_ns(&all.wills) == TIME_NEVER);
    die();
    wills_close(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), strlen(MESSAGE));
    assert_int_equal(store_reads(text, sizeof(text)), -1);
    int64_t left_ns = wills_close_ns(&all.wills) - clock_monotonic_ns();
    assert_int_equal(poll(&store, 1, (int)(left_ns / NS_PER_MS) + 2),
                     0); /* nobody else closes it */
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
    wills_close(&all.wills);
    assert_true(wills_close_ns(&all.wills) == TIME_NEVER);
    assert_int_equal(all.wills.sent[0], -1);
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
    assert_return_code(will_leave(&all.will, next[0], MESSAGE, strlen(MESSAGE), INSTANT_AT, &err),
                       0);
    hear();
    (void)close(next[0]);
    wills_close(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), strlen(MESSAGE));
    assert_int_equal(store_reads(text, sizeof(text)), -1);
    assert_int_equal(recv(next[1], text, sizeof(text), MSG_DONTWAIT), -1);
    wills_drop(&all.wills);
    assert_int_equal(store_reads(text, sizeof(text)), 0);
    assert_int_equal(recv(next[1], text, sizeof(text), MSG_DONTWAIT), 0);
    (void)close(next[1]);
}

static void has_a_place_for_the_instant_and_an_end(void **state)
{
    static const char zeros[WILL_MOST + 1];
    struct crown_error err;
    (void)state;
    assert_int_equal(will_leave(&all.will, all.socket, zeros, sizeof(zeros), 0, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    const size_t at[] = {5, 20 - WILL_INSTANT_DIGITS + 1, 20};
    for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        assert_int_equal(will_leave(&all.will, all.socket, zeros, 20, at[i], &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
    }
    (void)close(all.socket);
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
    assert_int_equal(will_leave(&all.will, all.socket, MESSAGE, strlen(MESSAGE), INSTANT_AT, &err),
                     -1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_sent_once_with_the_instant_of_the_death, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(is_not_sent_into_the_middle_of_a_message, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(that_is_revoked_leaves_the_connection_to_the_runtime,
                                        open_all, close_all),
        cmocka_unit_test_setup_teardown(goes_to_the_latest_connection, open_all, close_all),
        cmocka_unit_test_setup_teardown(is_what_was_left_last_and_told_of_once, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(leaves_the_store_a_moment_to_read_it, open_all, close_all),
        cmocka_unit_test_setup_teardown(reads_what_the_store_answers_until_it_closes, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(is_read_though_the_next_runtime_leaves_its_own, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(has_a_place_for_the_instant_and_an_end, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(that_is_none_is_neither_left_nor_revoked, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(are_four_at_most, open_all, close_all),
    };
    return cmocka_run_group_tests_name("a last will", tests, NULL, NULL);
}

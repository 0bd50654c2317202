#include "process/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[2];

static int open_pair(void **state)
{
    (void)state;
    return wire_pair(ends, NULL);
}

static int close_pair(void **state)
{
    (void)state;
    (void)close(ends[0]); /* some tests have closed one */
    (void)close(ends[1]);
    return 0;
}

static unsigned count_open(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void a_message_arrives_whole(void **state)
{
    (void)state;
    struct wire_message sent = {
        .type = WIRE_SET_DEADLINE, .id = 9, .stop_at_ns = -1, .kill_at_ns = 2, .status = -3};
    struct wire_message got;
    (void)strcpy(sent.text, "text");
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, NULL), 0);
    assert_int_equal(wire_send(ends[0], &sent, NULL, 0, NULL), 0);
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, NULL), 1);
    assert_int_equal(got.version, WIRE_VERSION);
    assert_int_equal(got.type, WIRE_SET_DEADLINE);
    assert_int_equal(got.id, 9);
    assert_int_equal(got.stop_at_ns, -1);
    assert_int_equal(got.kill_at_ns, 2);
    assert_int_equal(got.status, -3);
    assert_string_equal(got.text, "text");
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, NULL), 0);
}

static void descriptors_come_along_in_order_and_close_on_exec(void **state)
{
    (void)state;
    int fds[WIRE_MAX_FDS];
    int got_fds[WIRE_MAX_FDS];
    unsigned count = 0;
    int pipes[2];
    const struct wire_message sent = {.type = WIRE_START_KEEPER};
    struct wire_message got;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    for (unsigned i = 0; i < WIRE_MAX_FDS; i++)
        fds[i] = pipes[i % 2];
    assert_int_equal(wire_send(ends[0], &sent, fds, WIRE_MAX_FDS, NULL), 0);
    assert_int_equal(wire_receive(ends[1], &got, got_fds, &count, NULL), 1);
    assert_int_equal(count, WIRE_MAX_FDS);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(fcntl(got_fds[i], F_GETFD), FD_CLOEXEC);
        assert_int_equal(fcntl(got_fds[i], F_GETFL) & O_ACCMODE, i % 2 == 0 ? O_RDONLY : O_WRONLY);
        assert_int_equal(close(got_fds[i]), 0);
    }
    assert_int_equal(close(pipes[0]) | close(pipes[1]), 0);
}

static void descriptors_that_nobody_asked_for_do_not_stay_open(void **state)
{
    (void)state;
    const struct wire_message sent = {.type = WIRE_START_KEEPER};
    struct wire_message got;
    unsigned before = count_open();
    assert_int_equal(wire_send(ends[0], &sent, ends, 2, NULL), 0);
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, NULL), 1);
    assert_int_equal(count_open(), before);
}

/* Half of what a message speaks of would be another message. */
static void where_there_is_no_room_for_all_descriptors_none_comes(void **state)
{
    (void)state;
    int fds[WIRE_MAX_FDS] = {0};
    unsigned count = 7;
    struct rlimit before, few;
    const struct wire_message sent = {.type = WIRE_START_KEEPER, .id = 5};
    struct wire_message got;
    assert_int_equal(wire_send(ends[0], &sent, ends, 2, NULL), 0);
    int next = dup(ends[0]);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int received = wire_receive(ends[1], &got, fds, &count, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(received, 1);
    assert_int_equal(got.id, 5);
    assert_int_equal(count, 0);
    assert_int_equal(fcntl(next, F_GETFD), -1);
}

/* A process that ends without having read all it was sent: unix(7) has the kernel say ECONNRESET to
 * its peer, once, before what it wrote itself. */
static void last_words_arrive_of_who_did_not_listen_to_the_end(void **state)
{
    (void)state;
    const struct wire_message unread = {.type = WIRE_STOP_CHILD};
    const struct wire_message last = {.type = WIRE_GONE, .status = 3};
    struct wire_message got;
    struct crown_error err;
    assert_int_equal(wire_send(ends[1], &unread, NULL, 0, NULL), 0);
    assert_int_equal(wire_send(ends[0], &last, NULL, 0, NULL), 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, &err), 1);
    assert_int_equal(got.type, WIRE_GONE);
    assert_int_equal(got.status, 3);
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_CLOSED);
}

/* Sends bytes that are no message, with a descriptor. */
static void send_raw(const void *bytes, size_t size)
{
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &ends[0], sizeof(int));
    assert_int_equal(sendmsg(ends[0], &packet, MSG_NOSIGNAL), size);
}

static void assert_refused(void)
{
    struct wire_message got;
    struct crown_error err;
    int fds[WIRE_MAX_FDS];
    unsigned count = 0;
    unsigned before = count_open();
    assert_int_equal(wire_receive(ends[1], &got, fds, &count, &err), -1);
    assert_int_equal(err.code, ERROR_PROTOCOL);
    assert_int_equal(count_open(), before);
}

static void
a_message_of_the_wrong_size_version_or_type_is_refused_with_its_descriptors(void **state)
{
    (void)state;
    struct wire_message message = {.version = WIRE_VERSION, .type = WIRE_STOP};
    send_raw(&message, sizeof(message) - 1);
    assert_refused();
    struct {
        struct wire_message message;
        char more;
    } longer = {.message = message};
    send_raw(&longer, sizeof(message) + 1);
    assert_refused();
    message.version++;
    send_raw(&message, sizeof(message));
    assert_refused();
    message.version--;
    message.type = WIRE_TYPE_COUNT;
    send_raw(&message, sizeof(message));
    assert_refused();
}

static void a_text_without_an_end_gets_one(void **state)
{
    (void)state;
    struct wire_message message = {.type = WIRE_TITLE};
    struct wire_message got;
    memset(message.text, 'x', sizeof(message.text));
    assert_int_equal(wire_send(ends[0], &message, NULL, 0, NULL), 0);
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, NULL), 1);
    assert_int_equal(strlen(got.text), WIRE_TEXT - 1);
}

static void a_closed_line_says_so_to_both(void **state)
{
    (void)state;
    const struct wire_message message = {.type = WIRE_HEARTBEAT};
    struct wire_message got;
    struct crown_error err;
    assert_int_equal(wire_send(ends[0], &message, NULL, 0, NULL), 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, &err), 1); /* what was sent before */
    assert_int_equal(wire_receive(ends[1], &got, NULL, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_CLOSED);
    err = (struct crown_error){0};
    assert_int_equal(wire_send(ends[1], &message, NULL, 0, &err), -1);
    assert_int_equal(err.code, ERROR_CLOSED);
    assert_string_equal(err.message, "send heartbeat: the other process is gone");
}

static void who_ended_without_reading_is_gone_too(void **state)
{
    (void)state;
    const struct wire_message message = {.type = WIRE_HEARTBEAT};
    struct crown_error err = {0};
    assert_int_equal(wire_send(ends[1], &message, NULL, 0, NULL), 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(wire_send(ends[1], &message, NULL, 0, &err), -1);
    assert_int_equal(err.code, ERROR_CLOSED);
}

static void what_is_no_line_is_told_apart_from_who_is_gone(void **state)
{
    (void)state;
    const struct wire_message message = {.type = WIRE_HEARTBEAT};
    struct wire_message got;
    struct crown_error err = {0};
    assert_int_equal(wire_send(-1, &message, NULL, 0, &err), -1);
    assert_int_not_equal(err.code, ERROR_CLOSED);
    assert_non_null(strstr(err.message, "send heartbeat: "));
    err = (struct crown_error){0};
    assert_int_equal(wire_receive(-1, &got, NULL, NULL, &err), -1);
    assert_int_not_equal(err.code, ERROR_CLOSED);
    assert_non_null(strstr(err.message, "receive from another process: "));
}

/* What the kernel adds about the sender. */
static void who_sent_it_is_no_descriptor(void **state)
{
    (void)state;
    const struct wire_message message = {.type = WIRE_HEARTBEAT};
    struct wire_message got;
    int fds[WIRE_MAX_FDS], on = 1;
    unsigned count = 7, open_before = count_open();
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
    assert_int_equal(wire_send(ends[0], &message, NULL, 0, NULL), 0);
    assert_int_equal(wire_receive(ends[1], &got, fds, &count, NULL), 1);
    assert_int_equal(count, 0);
    assert_int_equal(count_open(), open_before);
}

static void a_full_line_does_not_block(void **state)
{
    (void)state;
    const struct wire_message message = {.type = WIRE_HEARTBEAT};
    struct crown_error err = {0};
    int result;
    do
        result = wire_send(ends[0], &message, NULL, 0, &err);
    while (result == 0);
    assert_int_equal(errno, EAGAIN);
    assert_int_not_equal(err.code, ERROR_CLOSED);
}

static void every_type_has_its_own_name(void **state)
{
    (void)state;
    for (int a = 0; a < WIRE_TYPE_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(wire_type_name((enum wire_type)a),
                                    wire_type_name((enum wire_type)b));
    assert_string_equal(wire_type_name(WIRE_TYPE_COUNT), "unknown");
}

#define WIRE_TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WIRE_TEST(a_message_arrives_whole),
        WIRE_TEST(descriptors_come_along_in_order_and_close_on_exec),
        WIRE_TEST(descriptors_that_nobody_asked_for_do_not_stay_open),
        WIRE_TEST(where_there_is_no_room_for_all_descriptors_none_comes),
        WIRE_TEST(a_message_of_the_wrong_size_version_or_type_is_refused_with_its_descriptors),
        WIRE_TEST(a_text_without_an_end_gets_one),
        WIRE_TEST(a_closed_line_says_so_to_both),
        WIRE_TEST(who_ended_without_reading_is_gone_too),
        WIRE_TEST(what_is_no_line_is_told_apart_from_who_is_gone),
        WIRE_TEST(who_sent_it_is_no_descriptor),
        WIRE_TEST(last_words_arrive_of_who_did_not_listen_to_the_end),
        WIRE_TEST(a_full_line_does_not_block),
        WIRE_TEST(every_type_has_its_own_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a runtime says to its supervisor, and what it does when that is gone. */
#include "process/link.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/wire.h"

static struct {
    struct link *link;
    int supervisor;
} ends;

static int open_ends(void **state)
{
    struct crown_error err;
    int line[2];
    (void)state;
    if (wire_pair(line, &err) < 0)
        return -1;
    ends.supervisor = line[0];
    ends.link = link_new(line[1], &err);
    return ends.link != NULL ? 0 : -1;
}

static int close_ends(void **state)
{
    (void)state;
    link_free(ends.link);
    return close(ends.supervisor);
}

/* Until there is none more. @return how many of them were of this type. */
static unsigned count_of(enum wire_type type)
{
    struct wire_message message;
    unsigned count = 0;
    while (wire_receive(ends.supervisor, &message, NULL, NULL, NULL) > 0)
        count += message.type == type;
    return count;
}

static void a_keeper_is_asked_to_be_ready_once(void **state)
{
    (void)state;
    link_prepare(ends.link);
    assert_int_equal(count_of(WIRE_PREPARE), 1);
    link_prepare(ends.link);
    assert_int_equal(count_of(WIRE_PREPARE), 0);
}

static void each_word_is_said_as_often_as_it_is_asked_for(void **state)
{
    (void)state;
    struct crown_error err;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(link_keep(ends.link, &err), 0);
        assert_int_equal(count_of(WIRE_KEEP), 1);
        assert_int_equal(link_arm(ends.link, true, 7, &err), 0);
        assert_int_equal(count_of(WIRE_ARM), 1);
        assert_int_equal(link_arm(ends.link, false, 0, &err), 0);
        assert_int_equal(count_of(WIRE_DISARM), 1);
        assert_int_equal(link_once(ends.link, 1, "once", &err), 0);
        assert_int_equal(count_of(WIRE_ONCE), 1);
        assert_int_equal(link_end_keeper(ends.link, 3, &err), 0);
        assert_int_equal(count_of(WIRE_END_KEEPER), 1);
    }
}

static void the_log_is_written_as_the_runtime_says(void **state)
{
    (void)state;
    struct wire_message message;
    link_log(ends.link, LOG_JSON, LOG_ERROR);
    assert_true(wire_receive(ends.supervisor, &message, NULL, NULL, NULL) > 0);
    assert_int_equal(message.type, WIRE_LOG);
    assert_int_equal(message.log_format, LOG_JSON);
    assert_int_equal(message.log_level, LOG_ERROR);
}

/* A runtime without a supervisor: most is lost, and what must not be lost fails. */
static void where_there_is_no_supervisor_only_a_child_is_missed(void **state)
{
    (void)state;
    struct crown_error err;
    struct keeper_link keeper = {.fd = -1};
    char *argv[] = {"child", NULL};
    const struct child_spec spec = {.argv = argv};
    struct link *alone = link_new(-1, &err);
    assert_non_null(alone);
    link_prepare(alone);
    link_log(alone, 0, 0);
    assert_int_equal(link_keep(alone, &err), 0);
    assert_int_equal(link_will(alone, 0, NULL, 0), -1);
    assert_int_equal(link_held(alone, "x"), -1);
    assert_int_equal(link_start_child(alone, &spec, &keeper, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_int_equal(keeper.fd, -1);
    link_free(alone);
    link_free(NULL);
}

static void a_long_text_is_cut_and_ends(void **state)
{
    (void)state;
    char text[2 * WIRE_TEXT];
    struct wire_message message;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(link_held(ends.link, text), 0);
    assert_true(wire_receive(ends.supervisor, &message, NULL, NULL, NULL) > 0);
    assert_int_equal(message.type, WIRE_HELD);
    assert_int_equal(strnlen(message.text, WIRE_TEXT), WIRE_TEXT - 1);
    link_title(ends.link, text);
    assert_true(wire_receive(ends.supervisor, &message, NULL, NULL, NULL) > 0);
    assert_int_equal(message.type, WIRE_TITLE);
    assert_int_equal(strnlen(message.text, WIRE_TEXT), WIRE_TEXT - 1);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void a_child_costs_a_line_to_its_keeper_and_no_more(void **state)
{
    (void)state;
    struct crown_error err;
    struct keeper_link keeper = {.fd = -1};
    char *argv[] = {"child", NULL}, *envp[] = {NULL};
    const struct child_spec spec = {
        .argv = argv, .envp = envp, .label = "x", .stdio_fd = {-1, -1, -1}};
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned nfds = 0, before = open_descriptors();
    assert_int_equal(link_start_child(ends.link, &spec, &keeper, &err), 0);
    assert_int_equal(open_descriptors(), before + 1);
    assert_true(wire_receive(ends.supervisor, &message, fds, &nfds, NULL) > 0);
    assert_int_equal(message.type, WIRE_START_KEEPER);
    assert_int_equal(message.id, keeper.id);
    assert_int_equal(nfds, 2);
    assert_int_equal(keeper_link_signal(&keeper, 15, &err), 0);
    assert_true(wire_receive(fds[0], &message, NULL, NULL, NULL) > 0);
    assert_int_equal(message.type, WIRE_SIGNAL);
    assert_int_equal(message.signal, 15);
    assert_int_equal(keeper_link_stop(&keeper, 9, &err), 0);
    assert_true(wire_receive(fds[0], &message, NULL, NULL, NULL) > 0);
    assert_int_equal(message.type, WIRE_STOP_CHILD);
    assert_int_equal(message.kill_at_ns, 9);
    assert_int_equal(keeper_link_set_deadline(&keeper, 1, 2, 3, &err), 0);
    assert_true(wire_receive(fds[0], &message, NULL, NULL, NULL) > 0);
    assert_int_equal(message.type, WIRE_SET_DEADLINE);
    assert_int_equal(message.stop_at_ns, 1);
    assert_int_equal(message.kill_at_ns, 2);
    assert_int_equal(message.deadline_ns, 3);
    keeper_link_close(&keeper);
    assert_int_equal(keeper.fd, -1);
    assert_true(wire_receive(fds[0], &message, NULL, NULL, NULL) < 0);
    keeper_link_close(&keeper);
    assert_int_equal(close(fds[0]) | close(fds[1]), 0);
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_keeper_is_asked_to_be_ready_once, open_ends, close_ends),
        cmocka_unit_test(where_there_is_no_supervisor_only_a_child_is_missed),
        cmocka_unit_test_setup_teardown(a_long_text_is_cut_and_ends, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(a_child_costs_a_line_to_its_keeper_and_no_more, open_ends,
                                        close_ends),
        cmocka_unit_test_setup_teardown(the_log_is_written_as_the_runtime_says, open_ends,
                                        close_ends),
        cmocka_unit_test_setup_teardown(each_word_is_said_as_often_as_it_is_asked_for, open_ends,
                                        close_ends),
    };
    return cmocka_run_group_tests_name("the line to the supervisor", tests, NULL, NULL);
}

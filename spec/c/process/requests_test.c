/* What a signal asks of the supervisor, by what came before. */
#include "process/requests.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interrupt_that_comes_again_is_one_for_half_a_second),
        cmocka_unit_test(the_half_second_counts_from_the_first),
        cmocka_unit_test(a_term_asks_for_order_whatever_came_before),
        cmocka_unit_test(a_hangup_is_a_terminal_s_or_nothing),
        cmocka_unit_test(who_is_to_keep_on_hears_of_no_hangup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

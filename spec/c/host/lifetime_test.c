#include "host/lifetime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static struct crown_error err;
static struct loop *loop;
static struct link *nobody;
static struct heartbeat heartbeat;
static struct lifetime lifetime;
static struct loop_deadline given_up;

static void turned(void *context)
{
    (void)context;
    lifetime_turn(&lifetime);
}

static void give_up(struct loop_deadline *deadline)
{
    (void)deadline;
    loop_stop(loop);
}

/* One with an election, which was told to stop. */
static int begin(void **state)
{
    (void)state;
    loop = loop_new(&err);
    nobody = link_new(-1, &err);
    if (loop == NULL || nobody == NULL)
        return -1;
    heartbeat_init(&heartbeat, loop, nobody);
    lifetime = (struct lifetime){.loop = loop, .heartbeat = &heartbeat};
    loop_on_turn(loop, turned, NULL);
    lifetime_election(&lifetime, true);
    lifetime_stop(&lifetime);
    given_up = (struct loop_deadline){.fire = give_up};
    loop_at(loop, &given_up, loop_now(loop) + 10 * NS_PER_S);
    return 0;
}

static int end(void **state)
{
    (void)state;
    loop_free(loop);
    link_free(nobody);
    return 0;
}

static int64_t run_ns(void)
{
    int64_t from_ns = loop_now(loop);
    loop_run(loop);
    assert_true(lifetime.exiting);
    return loop_now(loop) - from_ns;
}

static void the_last_election_ends_it(void **state)
{
    (void)state;
    lifetime_election(&lifetime, false);
    lifetime_turn(&lifetime);
    assert_true(lifetime.exiting);
}

static void who_has_given_a_lease_back_yields_to_the_next_leader(void **state)
{
    (void)state;
    lifetime_set_code(&lifetime, 3);
    lifetime_yield(&lifetime);
    lifetime_election(&lifetime, false);
    lifetime_turn(&lifetime);
    assert_false(lifetime.exiting);
    assert_true(run_ns() > NS_PER_MS);
    assert_int_equal(lifetime.code, 3);
}

static void an_election_that_goes_on_is_waited_for_all_the_same(void **state)
{
    (void)state;
    lifetime_election(&lifetime, true);
    lifetime_yield(&lifetime);
    lifetime_election(&lifetime, false);
    lifetime_turn(&lifetime);
    assert_false(loop_at_armed(&lifetime.yielded));
    lifetime_election(&lifetime, false);
    assert_true(run_ns() > NS_PER_MS);
}

static void on_a_virtual_clock_nobody_waits(void **state)
{
    (void)state;
    loop_set_virtual(loop, true);
    lifetime_yield(&lifetime);
    lifetime_election(&lifetime, false);
    lifetime_turn(&lifetime);
    assert_true(lifetime.exiting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_election_ends_it, begin, end),
        cmocka_unit_test_setup_teardown(who_has_given_a_lease_back_yields_to_the_next_leader, begin,
                                        end),
        cmocka_unit_test_setup_teardown(an_election_that_goes_on_is_waited_for_all_the_same, begin,
                                        end),
        cmocka_unit_test_setup_teardown(on_a_virtual_clock_nobody_waits, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

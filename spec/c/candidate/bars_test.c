/* What bars a candidate from leading, and since when, by its own rules. */
#include "candidate/bars.h"

#include "whole.h"

#include "lua/vm.h"

static void follow(void)
{
    whole_does("claim", "return 'denied', 4, 'two', 6");
    whole_elect();
    whole_skip();
}

static void who_is_barred_claims_when_nothing_bars_it_any_more(void **state)
{
    (void)state;
    follow();
    assert_null(bars_why(whole.candidate, ELECTION_BAR_NEVER));
    assert_int_equal(bars_since(whole.candidate, ELECTION_BAR_NEVER), TIME_NEVER);
    bars_allow(whole.candidate, ELECTION_BAR_NEVER); /* nothing bars it */
    assert_did(NULL);
    const int64_t barred_ns = loop_now(whole.env.loop);
    bars_bar(whole.candidate, ELECTION_BAR_NEVER, "too weak");
    whole_pass(S);
    bars_bar(whole.candidate, ELECTION_BAR_UNHEALTHY, "too far");
    assert_string_equal(bars_why(whole.candidate, ELECTION_BAR_NEVER), "too weak");
    assert_string_equal(bars_why(whole.candidate, ELECTION_BAR_UNHEALTHY), "too far");
    assert_int_equal(bars_since(whole.candidate, ELECTION_BAR_NEVER), barred_ns);
    assert_int_equal(bars_since(whole.candidate, ELECTION_BAR_UNHEALTHY), barred_ns + S);
    whole_pass(20 * S);
    assert_did("info  leadership.barred phase=following leader=two epoch=6 reason=never "
               "error=\"too weak\"",
               "asks abdicate false",
               "info  leadership.barred phase=following leader=two epoch=6 reason=unhealthy "
               "error=\"too far\"");
    bars_bar(whole.candidate, ELECTION_BAR_NEVER, "still too weak");
    assert_string_equal(bars_why(whole.candidate, ELECTION_BAR_NEVER), "still too weak");
    assert_int_equal(bars_since(whole.candidate, ELECTION_BAR_NEVER), barred_ns);
    bars_allow(whole.candidate, ELECTION_BAR_UNHEALTHY);
    assert_null(bars_why(whole.candidate, ELECTION_BAR_UNHEALTHY));
    whole_pass(20 * S);
    assert_did(NULL);
    bars_allow(whole.candidate, ELECTION_BAR_NEVER);
    whole_pass(5 * S);
    assert_did("info  leadership.allowed phase=following leader=two epoch=6 reason=never",
               "asks claim", "debug leadership.rejected phase=following leader=two epoch=6",
               "asks claim", "debug leadership.rejected phase=following leader=two epoch=6");
    bars_bar(whole.candidate, ELECTION_BAR_NEVER, "weak again");
    assert_int_equal(bars_since(whole.candidate, ELECTION_BAR_NEVER), loop_now(whole.env.loop));
}

static void a_leader_that_is_barred_goes(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_elect();
    whole_skip();
    bars_bar(whole.candidate, ELECTION_BAR_UNHEALTHY, "too weak");
    whole_pass(0);
    assert_did("info  leadership.barred phase=finishing leader=one epoch=7 reason=unhealthy "
               "error=\"too weak\"",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=unhealthy "
               "error=\"too weak\"",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
    whole_pass(20 * S);
    assert_did(NULL);
}

static void hears(unsigned count)
{
    lua_State *L = lua_vm_state(whole.env.lua);
    for (unsigned i = 0; i < count; i++) {
        lua_pushinteger(L, (lua_Integer)i);
        assert_true(candidate_send(whole.candidate, L));
    }
}

/* Its oracle may send nothing more before it was heard, but a flood is not kept. */
static void it_keeps_sixteen_messages_while_it_may_not_claim(void **state)
{
    (void)state;
    whole_does("info", "return 'nothing'");
    follow();
    assert_false(bars_heard_enough(whole.candidate));
    bars_bar(whole.candidate, ELECTION_BAR_NEVER, "too weak");
    whole_pass(S);
    hears(15);
    assert_false(bars_heard_enough(whole.candidate));
    hears(1);
    assert_true(bars_heard_enough(whole.candidate));
    hears(100);
    assert_int_equal(whole.candidate->mailbox.count, 16);
    bars_allow(whole.candidate, ELECTION_BAR_NEVER);
    assert_false(bars_heard_enough(whole.candidate));
    hears(1);
    whole_pass(20 * S);
    assert_int_equal(whole.candidate->mailbox.count, 0);
}

static void a_term_that_ends_hears_on(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("abdicate", "wait(1000)");
    whole_elect();
    whole_pass(S);
    bars_bar(whole.candidate, ELECTION_BAR_NEVER, "too weak");
    hears(20);
    assert_int_equal(whole.candidate->mailbox.count, 20);
}

static void it_may_be_barred_before_it_begins(void **state)
{
    (void)state;
    whole.candidate = whole_new();
    bars_bar(whole.candidate, ELECTION_BAR_NEVER, "too weak");
    hears(20);
    assert_int_equal(whole.candidate->mailbox.count, 16);
    candidate_start(whole.candidate);
    whole_pass(20 * S);
    assert_did("info  leadership.barred phase=init epoch=0 reason=never error=\"too weak\"",
               "runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead");
}

#define WHOLE_TEST(name) cmocka_unit_test_setup_teardown(name, whole_open, whole_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(who_is_barred_claims_when_nothing_bars_it_any_more),
        WHOLE_TEST(a_leader_that_is_barred_goes),
        WHOLE_TEST(it_keeps_sixteen_messages_while_it_may_not_claim),
        WHOLE_TEST(a_term_that_ends_hears_on),
        WHOLE_TEST(it_may_be_barred_before_it_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

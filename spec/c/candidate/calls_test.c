/* What a candidate asks its oracle, what it makes of the answers, and what it tells of them. */
#include "whole.h"

#include <lauxlib.h>

#include "lua/vm.h"

static void a_free_election_is_won_and_refreshed(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'granted', 8, 30, 7");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "info  leadership.claimed phase=leading leader=one epoch=7",
               "debug leadership.changed phase=leading leader=one epoch=7",
               "shown leading, 1 lead");
    whole_pass(10 * S);
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=7");
    whole_pass(8 * S);
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=7");
    candidate_stop(whole.candidate);
    whole_pass(0);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=shutdown",
               "shown finishing, 0 lead", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

static void a_follower_claims_when_the_leaders_lease_ends(void **state)
{
    (void)state;
    whole_does("claim", "return 'denied', 4, 'two', 6, false, nil, nil, nil, true");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "debug leadership.rejected phase=following leader=two epoch=6 unsure=true",
               "info  leadership.changed phase=following leader=two epoch=6");
    whole_does("claim", "return 'denied', nil, 'three', 9, false, 2");
    whole_pass(5 * S);
    assert_did("asks claim", "debug leadership.rejected phase=following leader=three epoch=9",
               "info  leadership.changed phase=following leader=three epoch=9");
    whole_does("claim", "return 'denied', nil, 'three', 10, false, nil, 'the store said so'");
    whole_pass(3 * S);
    assert_did("asks claim",
               "debug leadership.rejected phase=following leader=three epoch=10 "
               "error=\"the store said so\"",
               "info  leadership.changed phase=following leader=three epoch=10");
    whole_does("claim", "return 'denied'");
    whole_pass(6 * S);
    assert_did("asks claim", "debug leadership.rejected phase=following epoch=0");
    whole_does("claim", "return 'granted', 10, 30, 11");
    whole_pass(6 * S);
    assert_did("asks claim", "info  leadership.claimed phase=leading leader=one epoch=11",
               "debug leadership.changed phase=leading leader=one epoch=11",
               "shown leading, 1 lead");
}

static void a_lost_lease_is_told_with_the_reason_of_the_denial(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'denied', 20, 'two', 8, false, nil, 'somebody was faster'");
    whole_elect();
    whole_skip();
    whole_pass(10 * S);
    assert_did("asks refresh",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=denied "
               "error=\"somebody was faster\"",
               "info  leadership.changed phase=finishing leader=two epoch=8",
               "shown finishing, 0 lead", "shown following, 0 lead");
    whole_does("claim", "return 'granted', 10, 30, 9");
    whole_does("refresh", "return 'denied'");
    whole_pass(21 * S);
    whole_skip();
    whole_pass(10 * S);
    assert_did(
        "asks refresh", "warn  leadership.lost phase=finishing leader=one epoch=9 reason=denied",
        "shown finishing, 0 lead", "shown following, 0 lead", "asks claim",
        "error oracle.amnesia phase=following leader=one epoch=9 error=\"the store may have lost "
        "the record of who leads: nobody claims until a lease that it may have granted is over\"",
        "asks abdicate false");
}

static void a_store_that_may_have_forgotten_is_told_of(void **state)
{
    (void)state;
    whole_does("claim", "return 'denied', 12.26, nil, 0, true");
    whole_elect();
    assert_did(
        "runtime is held", "debug process.initialized phase=init epoch=0",
        "shown following, 0 lead", "asks claim",
        "error oracle.amnesia phase=following epoch=0 wait=12.3 error=\"the store may have lost "
        "the record of who leads: nobody claims until a lease that it may have granted is over\"");
    whole_pass(7 * S);
    assert_did(NULL);
    whole_does("claim", "return 'denied', nil, nil, 0, true, nil, 'the clock was set back'");
    whole_pass(6 * S);
    assert_did("asks claim",
               "error oracle.amnesia phase=following epoch=0 error=\"the clock was set back\"");
    struct candidate_status status;
    candidate_status(whole.candidate, &status);
    assert_true(status.doubted);
    whole_does("claim", "return 'denied', 20, 'two', 3");
    whole_pass(40 * S);
    candidate_status(whole.candidate, &status);
    assert_false(status.doubted);
}

static void failures_are_told_by_their_function_and_reason(void **state)
{
    (void)state;
    whole_does("claim", "error('no such thing', 0)");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "error oracle.error phase=following epoch=0 function=claim error=\"no such thing\"",
               "   stack traceback:", "    [C]: in function 'error'", "    test:1: in main chunk",
               "asks abdicate false");
    whole_does("claim", "return 'unknown', 'read-only', 'store', 7");
    whole_pass(6 * S);
    assert_did("asks claim",
               "error oracle.error phase=following epoch=0 function=claim error=read-only",
               "asks abdicate false");
    whole_pass(6 * S);
    assert_did(NULL);
    whole_does("claim", "return 'unknown', 'no table', 'usage'");
    whole_pass(4 * S);
    assert_did(
        "asks claim",
        "error oracle.error phase=following epoch=0 function=claim error=\"no table\" fault=usage",
        "asks abdicate false");
    whole_does("claim", "return");
    whole_pass(10 * S);
    assert_did("asks claim",
               "error oracle.error phase=following epoch=0 function=claim error=\"(no message)\"",
               "asks abdicate false");
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_pass(20 * S);
    assert_did("asks claim", "info  leadership.claimed phase=leading leader=one epoch=7",
               "debug leadership.changed phase=leading leader=one epoch=7", "shown leading, 1 lead",
               "asks refresh",
               "error oracle.error phase=leading leader=one epoch=7 function=refresh error=\"(no "
               "message)\"",
               "warn  leadership.uncertain phase=leading leader=one epoch=7", "asks refresh",
               "warn  leadership.uncertain phase=leading leader=one epoch=7", "asks refresh",
               "warn  leadership.uncertain phase=leading leader=one epoch=7", "asks refresh",
               "warn  leadership.uncertain phase=leading leader=one epoch=7", "asks refresh",
               "warn  leadership.uncertain phase=leading leader=one epoch=7", "asks refresh",
               "warn  leadership.uncertain phase=leading leader=one epoch=7", "asks refresh",
               "warn  leadership.uncertain phase=leading leader=one epoch=7");
    whole_does("refresh", "return 'unknown', 'away'");
    whole_pass(40 * S);
    assert_did(
        "asks refresh",
        "error oracle.error phase=leading leader=one epoch=7 function=refresh error=away",
        "warn  leadership.uncertain phase=leading leader=one epoch=7",
        "warn  leadership.lost phase=finishing leader=one epoch=7 reason=expired error=away",
        "shown finishing, 0 lead", "asks abdicate false",
        "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead",
        "asks claim",
        "error oracle.amnesia phase=following leader=one epoch=7 error=\"the store may have lost "
        "the record of who leads: nobody claims until a lease that it may have granted is over\"",
        "asks abdicate false");
}

static void who_does_not_answer_is_given_up(void **state)
{
    (void)state;
    whole_does("claim", "wait(100)");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim");
    whole_pass(3 * S - 1);
    assert_did(NULL);
    whole_pass(1);
    assert_did("error oracle.error phase=following epoch=0 function=claim error=\"words://here: no "
               "answer in the time allowed\"",
               "asks abdicate false");
    whole_pass(1 * S);
    assert_did(NULL);
}

static void silence_hides_no_cause_that_was_told_before(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_elect();
    whole_does("refresh", "return 'unknown', 'away'");
    whole_pass(11 * S);
    whole_skip();
    whole_does("refresh", "wait(100)");
    whole_pass(19 * S);
    assert_did("asks refresh", "warn  leadership.uncertain phase=leading leader=one epoch=7",
               "asks refresh", "warn  leadership.uncertain phase=leading leader=one epoch=7",
               "asks refresh", "warn  leadership.uncertain phase=leading leader=one epoch=7",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=expired error=away",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void send(const char *lua)
{
    lua_State *L = lua_vm_state(whole.env.lua);
    assert_int_equal(luaL_loadstring(L, lua), 0);
    assert_int_equal(lua_pcall(L, 0, 1, 0), 0);
    assert_true(candidate_send(whole.candidate, L));
    whole_pass(0);
}

static void a_message_is_given_to_the_oracle(void **state)
{
    (void)state;
    whole_does("claim", "return 'denied', 20, 'two', 6");
    whole_does("info", "return 'nothing'");
    whole_elect();
    whole_skip();
    send("return 'one'");
    assert_did("asks info one");
    whole_does("info", "return 'denied', 30, 'three', 8");
    send("return 'two'");
    assert_did("asks info two", "debug leadership.rejected phase=following leader=three epoch=8",
               "info  leadership.changed phase=following leader=three epoch=8");
    whole_does("info", "error('what?', 0)");
    send("return nil");
    assert_did(
        "asks info nil",
        "error oracle.error phase=following leader=three epoch=8 function=handle_info error=what?",
        "   stack traceback:", "    [C]: in function 'error'", "    test:1: in main chunk",
        "asks abdicate false");
    whole_pass(6 * S);
    whole_skip();
    whole_does("info", "return 'granted', 10, 30, 9");
    send("return 'free'");
    assert_did("asks info free", "info  monitor.leader_down phase=leading leader=one epoch=9",
               "info  leadership.claimed phase=leading leader=one epoch=9",
               "debug leadership.changed phase=leading leader=one epoch=9",
               "shown leading, 1 lead");
    whole_does("info", "return 'evicted'");
    send("return 'go'");
    assert_did("asks info go", "debug leadership.evicted phase=finishing leader=one epoch=9",
               "warn  leadership.lost phase=finishing leader=one epoch=9 reason=evicted",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=9", "shown following, 0 lead");
}

static void two_epochs_in_one_term_are_told_of(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'granted', 10, 30, 8");
    whole_elect();
    whole_skip();
    whole_pass(10 * S);
    assert_did(
        "asks refresh", "error leadership.conflict phase=finishing leader=one epoch=8",
        "warn  leadership.lost phase=finishing leader=one epoch=7 reason=denied",
        "shown finishing, 0 lead", "asks abdicate false",
        "info  leadership.abdicated phase=following epoch=8", "shown following, 0 lead",
        "asks claim",
        "error oracle.amnesia phase=following leader=one epoch=7 error=\"the store may have lost "
        "the record of who leads: nobody claims until a lease that it may have granted is over\"",
        "asks abdicate false");
}

/* Numbers of Lua are whole up to 2^53. */
static void an_epoch_is_a_whole_number_that_lua_can_count(void **state)
{
    (void)state;
    whole_does("claim", "return 'denied', 4, 'two', 9007199254740991");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "debug leadership.rejected phase=following leader=two epoch=9007199254740991",
               "info  leadership.changed phase=following leader=two epoch=9007199254740991");
    whole_does("claim", "return 'denied', 4, 'two', 9007199254740992");
    whole_pass(5 * S);
    whole_skip();
    struct candidate_status status;
    candidate_status(whole.candidate, &status);
    assert_int_equal(status.leader_epoch, 0);
    whole_does("claim", "return 'denied', 4, 'two', 1");
    whole_pass(5 * S);
    candidate_status(whole.candidate, &status);
    assert_int_equal(status.leader_epoch, 1);
}

/* The own epoch is no other leader's; where nobody is known to lead, it is the last one known. */
static void an_epoch_that_is_not_told_is_not_made_up(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'denied', 2, 'two'");
    whole_elect();
    whole_skip();
    whole_pass(10 * S);
    assert_did("asks refresh",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=denied",
               "info  leadership.changed phase=finishing leader=two epoch=0",
               "shown finishing, 0 lead", "shown following, 0 lead");
    whole_does("claim", "return 'denied'");
    whole_pass(6 * S);
    assert_did("asks claim", "debug leadership.rejected phase=following epoch=7");
}

static void a_term_begins_after_its_cool_down(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7, nil, nil, nil, nil, nil, 4");
    whole_does("refresh", "return 'granted', 10, 30, 7");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "info  leadership.claimed phase=cooling leader=one epoch=7",
               "shown cooling, 0 lead");
    whole_pass(4 * S);
    assert_did("info  leadership.acting phase=leading leader=one epoch=7",
               "debug leadership.changed phase=leading leader=one epoch=7",
               "shown leading, 1 lead");
}

/* The oracle is a module of the user's. */
static void a_store_without_a_name_is_not_named(void **state)
{
    (void)state;
    whole.config.store = NULL;
    whole_does("claim", "wait(100)");
    whole_elect();
    whole_skip();
    whole_pass(3 * S);
    assert_did("error oracle.error phase=following epoch=0 function=claim error=\"no answer in the "
               "time allowed\"",
               "asks abdicate false");
}

static void who_is_stopped_while_it_asks_blames_no_store(void **state)
{
    (void)state;
    whole_does("claim", "wait(100)");
    whole_elect();
    whole_skip();
    whole_pass(2 * S);
    candidate_stop(whole.candidate);
    whole_pass(S);
    assert_did("asks abdicate true", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=0", "runtime is let go");
}

static void one_that_cannot_release_is_not_asked_to(void **state)
{
    (void)state;
    whole.config.election.has_abdicate = false;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_elect();
    whole_skip();
    candidate_abdicate(whole.candidate);
    whole_pass(S);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "shown following, 0 lead");
}

static void who_abdicates_stands_back_for_others(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("abdicate", "error('gone', 0)");
    whole_elect();
    whole_skip();
    candidate_abdicate(whole.candidate);
    whole_pass(0);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "asks abdicate false",
               "error oracle.error phase=finishing epoch=7 function=abdicate error=gone",
               "   stack traceback:", "    [C]: in function 'error'", "    test:1: in main chunk",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
    whole_does("claim", "return 'denied', 30, 'two', 8");
    whole_pass(6 * S);
    assert_did("asks claim", "debug leadership.rejected phase=following leader=two epoch=8",
               "info  leadership.changed phase=following leader=two epoch=8");
}

static void who_is_evicted_goes(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'evicted'");
    whole_elect();
    whole_skip();
    whole_pass(10 * S);
    assert_did("asks refresh", "debug leadership.evicted phase=finishing leader=one epoch=7",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=evicted",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void a_refresh_after_the_clock_was_set_does_not_wait(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'granted', 10, 30, 7");
    whole_elect();
    whole_skip();
    candidate_clock_set(whole.candidate);
    whole_pass(0);
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=7");
}

/* What the store counted before the call belongs to the lease: `past` of its TTL is over. */
static void a_lease_counts_from_when_the_store_began_to_count(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7, nil, nil, nil, nil, 5");
    whole_elect();
    const int64_t now_ns = loop_now(whole.env.loop);
    const int64_t late_ns = candidate_deadline(whole.candidate);
    candidate_free(whole.candidate);
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_elect();
    assert_int_equal(loop_now(whole.env.loop), now_ns);
    assert_int_equal(candidate_deadline(whole.candidate) - late_ns, 5 * S);
}

static void calls_are_counted_by_their_function(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'granted', 10, 30, 7");
    whole_does("info", "return 'nothing'");
    whole_elect();
    assert_int_equal(whole_calls("claim"), 1);
    whole_pass(20 * S);
    assert_int_equal(whole_calls("refresh"), 2);
    send("return 'one'");
    assert_int_equal(whole_calls("handle_info"), 1);
    candidate_stop(whole.candidate);
    whole_pass(0);
    assert_int_equal(whole_calls("abdicate"), 1);
    assert_int_equal(whole_calls("claim"), 1);
}

#define WHOLE_TEST(name) cmocka_unit_test_setup_teardown(name, whole_open, whole_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(a_free_election_is_won_and_refreshed),
        WHOLE_TEST(a_follower_claims_when_the_leaders_lease_ends),
        WHOLE_TEST(a_lost_lease_is_told_with_the_reason_of_the_denial),
        WHOLE_TEST(a_store_that_may_have_forgotten_is_told_of),
        WHOLE_TEST(failures_are_told_by_their_function_and_reason),
        WHOLE_TEST(who_does_not_answer_is_given_up),
        WHOLE_TEST(silence_hides_no_cause_that_was_told_before),
        WHOLE_TEST(a_message_is_given_to_the_oracle),
        WHOLE_TEST(two_epochs_in_one_term_are_told_of),
        WHOLE_TEST(an_epoch_is_a_whole_number_that_lua_can_count),
        WHOLE_TEST(an_epoch_that_is_not_told_is_not_made_up),
        WHOLE_TEST(a_term_begins_after_its_cool_down),
        WHOLE_TEST(a_lease_counts_from_when_the_store_began_to_count),
        WHOLE_TEST(a_store_without_a_name_is_not_named),
        WHOLE_TEST(who_is_stopped_while_it_asks_blames_no_store),
        WHOLE_TEST(one_that_cannot_release_is_not_asked_to),
        WHOLE_TEST(who_abdicates_stands_back_for_others),
        WHOLE_TEST(who_is_evicted_goes),
        WHOLE_TEST(a_refresh_after_the_clock_was_set_does_not_wait),
        WHOLE_TEST(calls_are_counted_by_their_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

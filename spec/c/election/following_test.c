/* Following: when it claims, what it believes of the answers, how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "story.h"

static void claim_again(void)
{
    while (story_find(ELECTION_ACTION_CALL_CLAIM) == NULL)
        story_wait();
}

/* Leads under an epoch, and has let go of it again. */
static void lead_once(uint64_t epoch)
{
    story_begin();
    story_grant(epoch);
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_let_go();
    claim_again();
}

static void a_claim_waits_for_the_lease_to_end_and_a_little_more(void **state)
{
    (void)state;
    story_begin();
    story_deny(3 * NS_PER_S, 1);
    assert_in_range(story.election.armed_ns - story.now, 3 * NS_PER_S + NS_PER_MS / 5,
                    3 * NS_PER_S + NS_PER_MS);
}

static void a_store_that_says_nothing_is_left_is_not_asked_without_end(void **state)
{
    (void)state;
    story_begin();
    story_deny(0, 1);
    assert_in_range(story.election.armed_ns - story.now, NS_PER_MS, 3 * NS_PER_MS / 2);
}

static void a_message_hastens_no_first_claim(void **state)
{
    (void)state;
    story.with.claim_delay_ns = 5 * NS_PER_S;
    story_begin();
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_null(story_find(ELECTION_ACTION_CALL_INFO));
    assert_int_equal(story.election.armed_ns - story.now, 5 * NS_PER_S);
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    story_deny(STORY_TTL, 1);
    assert_non_null(story_find(ELECTION_ACTION_CALL_INFO)); /* it is kept until then */
}

/* The release of what it may have got wakes the others, and theirs wakes this one: without a pause
 * they would never rest. */
static void a_message_whose_claim_ended_unknown_is_followed_by_no_claim_before_a_retry(void **state)
{
    (void)state;
    story_begin();
    story_deny(STORY_TTL, 1);
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_INFO));
    story_feed_type(ELECTION_EVENT_UNKNOWN);
    story_feed_type(ELECTION_EVENT_RELEASED);
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_null(story_find(ELECTION_ACTION_CALL_INFO));
    assert_int_equal(story.election.armed_ns - story.now, story.with.retry_ns);
    story_wait();
    assert_true(story_find(ELECTION_ACTION_CALL_INFO) || story_find(ELECTION_ACTION_CALL_CLAIM));
}

static void a_message_hastens_no_claim_after_an_owed_lost(void **state)
{
    (void)state;
    struct crown_error err;
    story.with.claim_delay_ns = 5 * NS_PER_S;
    story.now = 100 * NS_PER_S;
    assert_int_equal(election_init(&story.election, &story.with, story.restarted, &err), 0);
    story_feed_type(ELECTION_EVENT_START_OWING);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_null(story_find(ELECTION_ACTION_CALL_INFO));
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    assert_int_equal(story.now, 105 * NS_PER_S);
}

static void the_store_may_say_when_to_ask_again(void **state)
{
    (void)state;
    story_begin();
    story_feed((struct election_event){
        .type = ELECTION_EVENT_DENIED,
        .denial = {.expires_ns = -1, .retry_ns = 5 * NS_PER_S, .epoch = 1}});
    assert_in_range(story.election.armed_ns - story.now, 5 * NS_PER_S, 5500 * NS_PER_MS);
}

static void claims_that_end_unknown_come_ever_later_up_to_a_bound(void **state)
{
    (void)state;
    story.with.has_abdicate = false;
    story_begin();
    for (int try = 0; try < 6; try++) {
        int64_t pause = story.with.retry_ns << (try < 3 ? try : 3);
        story_feed_type(ELECTION_EVENT_UNKNOWN);
        int64_t failed = story.now;
        story_wait();
        assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
        assert_in_range(story.now - failed, pause, pause + pause / 10 + 1);
    }
}

static void a_claim_that_was_answered_too_late_is_no_term(void **state)
{
    (void)state;
    story.with.call_timeout_ns = 60 * NS_PER_S;
    story_begin();
    story.now += STORY_TTL;
    story_grant(1);
    assert_false(story_told(ELECTION_NOTICE_CLAIMED));
    assert_null(story_find(ELECTION_ACTION_SET_DEADLINE));
    assert_int_equal(election_look(&story.election).terms, 0);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
}

static void an_epoch_that_was_led_under_is_not_led_under_again(void **state)
{
    (void)state;
    lead_once(5);
    story_grant(5);
    assert_true(story_told(ELECTION_NOTICE_AMNESIA));
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
}

static void an_older_epoch_than_ones_own_is_not_believed(void **state)
{
    (void)state;
    lead_once(5);
    story_grant(4);
    assert_true(story_told(ELECTION_NOTICE_AMNESIA));
}

static void a_store_may_forget_again(void **state)
{
    (void)state;
    lead_once(5);
    story_grant(1); /* it forgot */
    story_feed_type(ELECTION_EVENT_RELEASED);
    claim_again();
    story_grant(2); /* its new life */
    assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_let_go();
    claim_again();
    story_grant(1); /* and again */
    assert_true(story_told(ELECTION_NOTICE_AMNESIA));
}

static void a_store_that_says_it_forgot_is_believed_afterwards(void **state)
{
    (void)state;
    story_begin();
    story_deny(NS_PER_S, 9);
    story_wait();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = STORY_TTL, .amnesia = true}});
    assert_true(story_told(ELECTION_NOTICE_AMNESIA));
    claim_again();
    story_grant(1);
    assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
}

static void an_oracle_without_epochs_gets_ones_own_count(void **state)
{
    (void)state;
    lead_once(0);
    assert_int_equal(election_look(&story.election).epoch, 1);
    story_grant(0);
    assert_int_equal(election_look(&story.election).epoch, 2);
}

static void an_answer_to_an_earlier_call_is_no_answer(void **state)
{
    (void)state;
    story_begin();
    uint32_t late = story.election.call.attempt;
    story_wait(); /* no answer: given up, and released */
    story_feed_type(ELECTION_EVENT_RELEASED);
    claim_again();
    story_feed((struct election_event){
        .type = ELECTION_EVENT_GRANTED, .attempt = late, .grant = {STORY_TTL / 3, STORY_TTL, 1}});
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
    assert_null(story_find(ELECTION_ACTION_SET_DEADLINE));
    story_deny(NS_PER_S, 2); /* the answer to the claim in flight still counts */
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
}

static void what_may_have_been_granted_is_released_before_a_claim_that_is_due(void **state)
{
    (void)state;
    story_begin();
    uint32_t late = story.election.call.attempt;
    story_wait();
    story_feed_type(ELECTION_EVENT_RELEASED);
    story.now = story.election.armed_ns; /* the next claim is due now */
    story_feed((struct election_event){
        .type = ELECTION_EVENT_GRANTED, .attempt = late, .grant = {STORY_TTL / 3, STORY_TTL, 1}});
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_null(story_find(ELECTION_ACTION_CALL_CLAIM));
}

static void a_claim_under_way_at_the_end_is_given_up_and_released(void **state)
{
    (void)state;
    story_begin();
    story_feed_type(ELECTION_EVENT_STOP);
    assert_non_null(story_find(ELECTION_ACTION_CANCEL_CALL));
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_null(story_find(ELECTION_ACTION_FINISH));
    story_feed_type(ELECTION_EVENT_RELEASED);
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

static void the_followers_child_is_waited_for_at_the_end(void **state)
{
    (void)state;
    story.with.has_follower_child = true;
    story_begin();
    story_deny(STORY_TTL, 1);
    story_feed_type(ELECTION_EVENT_STOP);
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    assert_null(story_find(ELECTION_ACTION_FINISH));
    story_feed_type(ELECTION_EVENT_CHILD_GONE);
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(a_claim_waits_for_the_lease_to_end_and_a_little_more),
        STORY_TEST(a_store_that_says_nothing_is_left_is_not_asked_without_end),
        STORY_TEST(a_message_hastens_no_first_claim),
        STORY_TEST(a_message_whose_claim_ended_unknown_is_followed_by_no_claim_before_a_retry),
        STORY_TEST(a_message_hastens_no_claim_after_an_owed_lost),
        STORY_TEST(the_store_may_say_when_to_ask_again),
        STORY_TEST(claims_that_end_unknown_come_ever_later_up_to_a_bound),
        STORY_TEST(a_claim_that_was_answered_too_late_is_no_term),
        STORY_TEST(an_epoch_that_was_led_under_is_not_led_under_again),
        STORY_TEST(an_older_epoch_than_ones_own_is_not_believed),
        STORY_TEST(a_store_may_forget_again),
        STORY_TEST(a_store_that_says_it_forgot_is_believed_afterwards),
        STORY_TEST(an_oracle_without_epochs_gets_ones_own_count),
        STORY_TEST(an_answer_to_an_earlier_call_is_no_answer),
        STORY_TEST(what_may_have_been_granted_is_released_before_a_claim_that_is_due),
        STORY_TEST(a_claim_under_way_at_the_end_is_given_up_and_released),
        STORY_TEST(the_followers_child_is_waited_for_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

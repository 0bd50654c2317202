/* Named cases of the core, each as a short story: what happens, and which actions it must lead to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "story.h"

static void r1_the_deadline_counts_from_before_the_request(void **state)
{
    (void)state;
    story_begin();
    int64_t sent = story.now;
    story.now += NS_PER_S; /* a slow answer */
    story_grant(1);
    assert_int_equal(story_find(ELECTION_ACTION_SET_DEADLINE)->deadline_ns,
                     sent + STORY_TTL - 350 * NS_PER_MS);
}

static void r1_what_was_asked_for_before_the_claim_counts_from_then(void **state)
{
    (void)state;
    story_begin();
    int64_t sent = story.now;
    story_feed((struct election_event){.type = ELECTION_EVENT_GRANTED,
                                       .grant = {STORY_TTL / 3, STORY_TTL, 1, NS_PER_S}});
    assert_int_equal(story_find(ELECTION_ACTION_SET_DEADLINE)->deadline_ns,
                     sent - NS_PER_S + STORY_TTL - 350 * NS_PER_MS);
    assert_in_range(story.election.refresh_at_ns, sent, sent + STORY_TTL / 3);
}

static void what_was_asked_for_too_long_before_the_claim_is_no_term(void **state)
{
    (void)state;
    story_begin();
    story_feed((struct election_event){.type = ELECTION_EVENT_GRANTED,
                                       .grant = {STORY_TTL / 3, STORY_TTL, 1, STORY_TTL}});
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
}

static void r4_release_comes_last(void **state)
{
    (void)state;
    story_lead();
    story_feed_type(ELECTION_EVENT_STOP);
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    assert_null(story_find(ELECTION_ACTION_CLOSE_TERM));
    story_feed_type(ELECTION_EVENT_CHILD_GONE);
    assert_non_null(story_find(ELECTION_ACTION_CLOSE_TERM));
    assert_null(story_find(ELECTION_ACTION_RUN_LOST));
    story_feed_type(ELECTION_EVENT_TERM_GONE);
    assert_int_equal(story_find(ELECTION_ACTION_RUN_LOST)->reason, ELECTION_REASON_SHUTDOWN);
    assert_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_null(story_find(ELECTION_ACTION_FINISH));
    story_feed_type(ELECTION_EVENT_RELEASED);
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

static void r3_unknown_leads_on_until_it_must_stop(void **state)
{
    (void)state;
    story_lead();
    int64_t stop_at = story.election.stop_at_ns;
    while (election_look(&story.election).phase == ELECTION_LEADING) {
        story_wait();
        if (story_find(ELECTION_ACTION_CALL_REFRESH) != NULL)
            story_feed_type(ELECTION_EVENT_UNKNOWN);
    }
    assert_int_equal(story.now, stop_at);
    assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_EXPIRED);
}

static void r10_a_definite_loss_stops_at_once_and_releases_nothing(void **state)
{
    (void)state;
    story_lead();
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_CALL_REFRESH));
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = NS_PER_S, .epoch = 2}});
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    story_feed_type(ELECTION_EVENT_CHILD_GONE);
    story_feed_type(ELECTION_EVENT_TERM_GONE);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    assert_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
}

static void r5_a_claim_that_ended_unknown_is_released_before_the_next(void **state)
{
    (void)state;
    story_begin();
    story_wait(); /* the call's own time runs out */
    assert_non_null(story_find(ELECTION_ACTION_CANCEL_CALL));
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    story_feed_type(ELECTION_EVENT_RELEASED);
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
}

static void r5_a_grant_of_a_call_that_was_given_up_is_released(void **state)
{
    (void)state;
    story_begin();
    uint32_t late = story.election.call.attempt;
    story_wait();
    story_feed_type(ELECTION_EVENT_RELEASED);
    story_feed((struct election_event){
        .type = ELECTION_EVENT_GRANTED, .attempt = late, .grant = {STORY_TTL / 3, STORY_TTL, 1}});
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
}

static void r7_a_follower_claims_as_the_lease_ends(void **state)
{
    (void)state;
    story_begin();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = 3 * NS_PER_S}});
    assert_in_range(story.election.armed_ns - story.now, 3 * NS_PER_S,
                    3 * NS_PER_S + 6 * NS_PER_MS);
}

static void r13_a_lost_election_is_contended_again(void **state)
{
    (void)state;
    r10_a_definite_loss_stops_at_once_and_releases_nothing(state);
    story_lead();
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_feed_type(ELECTION_EVENT_CHILD_GONE);
    story_feed_type(ELECTION_EVENT_TERM_GONE);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    story_feed_type(ELECTION_EVENT_RELEASED);
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
}

static void restarts_that_are_used_up_end_the_term_and_stand_back(void **state)
{
    (void)state;
    story_lead();
    for (unsigned i = 0; i < story.with.restart_max; i++) {
        story_feed(
            (struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.failed = true}});
        assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
        story_wait();
        assert_non_null(story_find(ELECTION_ACTION_START_CHILD));
    }
    story_feed(
        (struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.failed = true}});
    assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_CHILD_FAILED);
    story_feed_type(ELECTION_EVENT_TERM_GONE);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    story_feed_type(ELECTION_EVENT_RELEASED);
    assert_true(story.election.armed_ns - story.now > 59 * NS_PER_S);
}

static void the_followers_child_goes_before_the_leaders_comes(void **state)
{
    (void)state;
    story.with.has_follower_child = true;
    story_begin();
    story_deny(NS_PER_S, 1);
    assert_int_equal(story_find(ELECTION_ACTION_START_CHILD)->role, ELECTION_ROLE_FOLLOWER);
    story_wait();
    story_grant(2);
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    assert_null(story_find(ELECTION_ACTION_RUN_WON));
    story_feed_type(ELECTION_EVENT_CHILD_GONE);
    assert_int_equal(story_find(ELECTION_ACTION_START_CHILD)->role, ELECTION_ROLE_LEADER);
    assert_non_null(story_find(ELECTION_ACTION_RUN_WON));
}

static void another_epoch_in_a_refresh_is_a_conflict(void **state)
{
    (void)state;
    story_lead();
    story_wait();
    story_grant(3);
    assert_int_equal(story_find(ELECTION_ACTION_EMIT)->notice, ELECTION_NOTICE_CONFLICT);
    assert_int_equal(election_look(&story.election).phase, ELECTION_STEPPING);
}

static void a_store_that_forgot_is_sat_out(void **state)
{
    (void)state;
    story_begin();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = 0, .epoch = 9}});
    story_wait();
    story_grant(1);
    assert_int_equal(story_find(ELECTION_ACTION_EMIT)->notice, ELECTION_NOTICE_AMNESIA);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    story_feed_type(ELECTION_EVENT_RELEASED);
    assert_true(story.election.armed_ns - story.now >= STORY_TTL - NS_PER_S);
    story_wait();
    story_grant(2); /* its new life is believed */
    assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
}

static void a_follower_that_leaves_says_so_at_its_end(void **state)
{
    (void)state;
    story.with.leaves = true;
    story_begin();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = STORY_TTL, .epoch = 1}});
    story_feed_type(ELECTION_EVENT_STOP);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_null(story_find(ELECTION_ACTION_FINISH));
    assert_true(election_look(&story.election).ending);
    story_feed_type(ELECTION_EVENT_RELEASED);
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

static void a_follower_that_does_not_leave_ends_at_once(void **state)
{
    (void)state;
    story_begin();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = STORY_TTL, .epoch = 1}});
    story_feed_type(ELECTION_EVENT_STOP);
    assert_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(r1_the_deadline_counts_from_before_the_request),
        STORY_TEST(r1_what_was_asked_for_before_the_claim_counts_from_then),
        STORY_TEST(what_was_asked_for_too_long_before_the_claim_is_no_term),
        STORY_TEST(r4_release_comes_last),
        STORY_TEST(r3_unknown_leads_on_until_it_must_stop),
        STORY_TEST(r10_a_definite_loss_stops_at_once_and_releases_nothing),
        STORY_TEST(r5_a_claim_that_ended_unknown_is_released_before_the_next),
        STORY_TEST(r5_a_grant_of_a_call_that_was_given_up_is_released),
        STORY_TEST(r7_a_follower_claims_as_the_lease_ends),
        STORY_TEST(r13_a_lost_election_is_contended_again),
        STORY_TEST(restarts_that_are_used_up_end_the_term_and_stand_back),
        STORY_TEST(the_followers_child_goes_before_the_leaders_comes),
        STORY_TEST(another_epoch_in_a_refresh_is_a_conflict),
        STORY_TEST(a_store_that_forgot_is_sat_out),
        STORY_TEST(a_follower_that_leaves_says_so_at_its_end),
        STORY_TEST(a_follower_that_does_not_leave_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

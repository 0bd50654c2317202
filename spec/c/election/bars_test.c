/* What speaks against leading beside the store: a candidate's own rules of who leads and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "story.h"

static void bar(enum election_bar bar)
{
    story_feed((struct election_event){.type = ELECTION_EVENT_BARRED, .bar = bar});
}

static void allow(enum election_bar bar)
{
    story_feed((struct election_event){.type = ELECTION_EVENT_ALLOWED, .bar = bar});
}

static void a_candidate_that_is_barred_does_not_claim(void **state)
{
    (void)state;
    assert_int_equal(election_init(&story.election, &story.with, story.restarted, NULL), 0);
    bar(ELECTION_BAR_NEVER);
    story_feed_type(ELECTION_EVENT_START);
    assert_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    assert_true(election_look(&story.election).next_claim_ns == TIME_NEVER);
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_null(story_find(ELECTION_ACTION_CALL_INFO));
    allow(ELECTION_BAR_NEVER);
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
}

static void one_bar_is_enough(void **state)
{
    (void)state;
    story_begin();
    bar(ELECTION_BAR_UNHEALTHY);
    bar(ELECTION_BAR_WINDOW);
    story_feed_type(ELECTION_EVENT_RELEASED);
    allow(ELECTION_BAR_UNHEALTHY);
    assert_false(story_told(ELECTION_NOTICE_ALLOWED));
    assert_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    allow(ELECTION_BAR_WINDOW);
    assert_true(story_told(ELECTION_NOTICE_ALLOWED));
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
}

static void a_claim_under_way_is_given_back(void **state)
{
    (void)state;
    story_begin();
    bar(ELECTION_BAR_WINDOW);
    assert_non_null(story_find(ELECTION_ACTION_CANCEL_CALL));
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
}

static void who_may_be_next_in_a_queue_leaves_it(void **state)
{
    (void)state;
    story_begin();
    story_deny(60 * NS_PER_S, 1);
    bar(ELECTION_BAR_UNHEALTHY);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
}

static void a_leader_that_is_barred_steps_down_in_order(void **state)
{
    (void)state;
    static const struct {
        enum election_bar bar;
        enum election_reason reason;
    } ends[] = {{ELECTION_BAR_NEVER, ELECTION_REASON_ABDICATED},
                {ELECTION_BAR_UNHEALTHY, ELECTION_REASON_UNHEALTHY},
                {ELECTION_BAR_WINDOW, ELECTION_REASON_WINDOW},
                {ELECTION_BAR_PAUSED, ELECTION_REASON_PAUSED},
                {ELECTION_BAR_HANDOVER, ELECTION_REASON_HANDOVER}};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        story_lead();
        bar(ends[i].bar);
        assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
        assert_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
        assert_int_equal(election_look(&story.election).last_reason, ends[i].reason);
        story_let_go();
        assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
    }
}

static void who_stepped_down_lets_the_others_come_first(void **state)
{
    (void)state;
    story.with.stand_back_ns = 5 * NS_PER_S;
    story_lead();
    bar(ELECTION_BAR_UNHEALTHY);
    story_let_go();
    int64_t let_go = story.now;
    allow(ELECTION_BAR_UNHEALTHY);
    assert_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    assert_int_equal(story.now - let_go, 5 * NS_PER_S);
}

static void what_an_order_bars_claims_as_soon_as_that_is_over(void **state)
{
    (void)state;
    static const enum election_bar ordered[] = {ELECTION_BAR_PAUSED, ELECTION_BAR_HANDOVER};
    for (size_t i = 0; i < sizeof(ordered) / sizeof(*ordered); i++) {
        story.with.stand_back_ns = 5 * NS_PER_S;
        story_lead();
        bar(ordered[i]);
        story_let_go();
        assert_null(story_find(ELECTION_ACTION_CALL_CLAIM));
        allow(ordered[i]);
        assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    }
}

static void the_followers_child_does_not_wait_for_a_claim(void **state)
{
    (void)state;
    story.with.has_follower_child = true;
    assert_int_equal(election_init(&story.election, &story.with, story.restarted, NULL), 0);
    bar(ELECTION_BAR_UNHEALTHY);
    story_feed_type(ELECTION_EVENT_START);
    const struct election_action *begun = story_find(ELECTION_ACTION_START_CHILD);
    assert_non_null(begun);
    assert_int_equal(begun->role, ELECTION_ROLE_FOLLOWER);
}

static void who_is_stopped_ends_barred_or_not(void **state)
{
    (void)state;
    story_begin();
    bar(ELECTION_BAR_WINDOW);
    story_feed_type(ELECTION_EVENT_RELEASED);
    story_feed_type(ELECTION_EVENT_STOP);
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(a_candidate_that_is_barred_does_not_claim),
        STORY_TEST(one_bar_is_enough),
        STORY_TEST(a_claim_under_way_is_given_back),
        STORY_TEST(who_may_be_next_in_a_queue_leaves_it),
        STORY_TEST(a_leader_that_is_barred_steps_down_in_order),
        STORY_TEST(who_stepped_down_lets_the_others_come_first),
        STORY_TEST(what_an_order_bars_claims_as_soon_as_that_is_over),
        STORY_TEST(the_followers_child_does_not_wait_for_a_claim),
        STORY_TEST(who_is_stopped_ends_barred_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

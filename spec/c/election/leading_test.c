/* Leading: when it refreshes, what the answers do to the deadline, how it hears that it is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "story.h"

static int64_t pause_after_unknown(void)
{
    story_feed_type(ELECTION_EVENT_UNKNOWN);
    int64_t failed = story.now;
    story_refresh();
    return story.now - failed;
}

static void a_refresh_is_never_later_than_asked(void **state)
{
    (void)state;
    story_lead();
    int64_t won = story.now;
    story_refresh();
    assert_in_range(story.now - won, STORY_TTL / 3 - STORY_TTL / 3 / 40, STORY_TTL / 3);
}

static void a_refresh_moves_the_deadline_on(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    int64_t sent = story.now;
    story.now += 10 * NS_PER_MS;
    story_grant(1);
    const struct election_action *told = story_find(ELECTION_ACTION_SET_DEADLINE);
    assert_non_null(told);
    assert_int_equal(told->deadline_ns, sent + STORY_TTL - 350 * NS_PER_MS);
    assert_true(told->stop_at_ns < told->kill_at_ns && told->kill_at_ns < told->deadline_ns);
    assert_true(story_told(ELECTION_NOTICE_REFRESHED));
}

static void an_unknown_refresh_is_tried_again_ever_later(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    for (int64_t pause = 100 * NS_PER_MS; pause <= 800 * NS_PER_MS; pause *= 2)
        assert_int_equal(pause_after_unknown(), pause);
    assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
}

static void an_answer_makes_the_next_try_quick_again(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    (void)pause_after_unknown();
    (void)pause_after_unknown();
    story_grant(1);
    story_refresh();
    assert_int_equal(pause_after_unknown(), 100 * NS_PER_MS);
}

static void a_refresh_leaves_time_for_another(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    const struct election_action *call = story_find(ELECTION_ACTION_CALL_REFRESH);
    int64_t left = election_look(&story.election).stop_at_ns - story.now;
    assert_in_range(call->until_ns - story.now, NS_PER_S, left / 2);
}

static void a_leader_asks_at_once_when_the_wall_clock_was_set(void **state)
{
    (void)state;
    story_lead();
    story.now += NS_PER_S;
    story_feed_type(ELECTION_EVENT_CLOCK_SET);
    assert_non_null(story_find(ELECTION_ACTION_CALL_REFRESH));
}

static void a_refresh_from_before_the_clock_was_set_does_not_count(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    uint32_t before = story.election.call.attempt;
    int64_t deadline_ns = election_look(&story.election).deadline_ns;
    story_feed_type(ELECTION_EVENT_CLOCK_SET);
    assert_non_null(story_find(ELECTION_ACTION_CANCEL_CALL));
    assert_non_null(story_find(ELECTION_ACTION_CALL_REFRESH));
    story_feed((struct election_event){
        .type = ELECTION_EVENT_GRANTED, .attempt = before, .grant = {STORY_TTL / 3, STORY_TTL, 1}});
    assert_int_equal(election_look(&story.election).deadline_ns, deadline_ns);
    story_grant(1);
    assert_true(election_look(&story.election).deadline_ns > deadline_ns);
}

static void who_follows_does_not_mind_the_wall_clock(void **state)
{
    (void)state;
    story_begin();
    story_deny(STORY_TTL, 1);
    story_feed_type(ELECTION_EVENT_CLOCK_SET);
    assert_int_equal(story.actions.count, 0);
}

static void who_is_evicted_stops_and_releases(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    story_feed_type(ELECTION_EVENT_EVICTED);
    assert_true(story_told(ELECTION_NOTICE_EVICTED));
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    story_gone();
    assert_int_equal(story_find(ELECTION_ACTION_RUN_LOST)->reason, ELECTION_REASON_EVICTED);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
}

/* Leads under one epoch, hears of a later one, and is then granted one between the two. */
static void grant_what_is_over(uint64_t epoch)
{
    story_let_go();
    while (story_find(ELECTION_ACTION_CALL_CLAIM) == NULL)
        story_wait();
    story_grant(epoch);
}

static void who_is_evicted_holds_the_lease_while_the_tree_lives(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    int64_t deadline_ns = election_look(&story.election).deadline_ns;
    story_feed_type(ELECTION_EVENT_EVICTED);
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    assert_non_null(story_find(ELECTION_ACTION_CALL_REFRESH));
    story_feed_type(ELECTION_EVENT_EVICTED); /* an oracle that says it each time */
    assert_int_equal(election_look(&story.election).deadline_ns, deadline_ns);
    story_refresh();
    story_grant(1);
    assert_true(election_look(&story.election).deadline_ns > deadline_ns);
    assert_int_equal(election_look(&story.election).phase, ELECTION_STEPPING);
}

static void a_denial_tells_of_the_epoch_that_came_after(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    story_deny(NS_PER_S, 5);
    grant_what_is_over(4);
    assert_true(story_told(ELECTION_NOTICE_AMNESIA));
}

static void a_conflict_tells_of_the_epoch_that_came_after(void **state)
{
    (void)state;
    story_lead();
    story_refresh();
    story_grant(5);
    assert_true(story_told(ELECTION_NOTICE_CONFLICT));
    grant_what_is_over(4);
    assert_true(story_told(ELECTION_NOTICE_AMNESIA));
}

static void who_does_not_watch_claims_once_after_a_term(void **state)
{
    (void)state;
    story.with.monitor_leader = false;
    story_lead();
    story_refresh();
    story_deny(-1, 2);
    story_let_go();
    /* What was to be told may have come while it led. */
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
    assert_non_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    story_deny(-1, 2);
    assert_int_equal(election_look(&story.election).next_claim_ns, TIME_NEVER);
}

static void old_restarts_of_the_child_do_not_count(void **state)
{
    (void)state;
    story_lead();
    for (unsigned i = 0; i < 3 * story.with.restart_max; i++) {
        int64_t later = story.now + story.with.restart_within_ns;
        while (story.now < later) { /* the lease is kept meanwhile */
            story_wait();
            if (story_find(ELECTION_ACTION_CALL_REFRESH) != NULL)
                story_grant(1);
        }
        story_feed(
            (struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.failed = true}});
        assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
    }
}

static void restarts_of_the_child_come_ever_later(void **state)
{
    (void)state;
    story.with.restart_max = 4;
    story_lead();
    for (int64_t pause = story.with.restart_backoff_first_ns;
         pause <= 8 * story.with.restart_backoff_first_ns; pause *= 2) {
        story_feed(
            (struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.failed = true}});
        int64_t ended = story.now;
        story_wait();
        assert_non_null(story_find(ELECTION_ACTION_START_CHILD));
        assert_int_equal(story.now - ended, pause);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(a_refresh_is_never_later_than_asked),
        STORY_TEST(a_refresh_moves_the_deadline_on),
        STORY_TEST(an_unknown_refresh_is_tried_again_ever_later),
        STORY_TEST(an_answer_makes_the_next_try_quick_again),
        STORY_TEST(a_refresh_leaves_time_for_another),
        STORY_TEST(a_leader_asks_at_once_when_the_wall_clock_was_set),
        STORY_TEST(a_refresh_from_before_the_clock_was_set_does_not_count),
        STORY_TEST(who_follows_does_not_mind_the_wall_clock),
        STORY_TEST(who_is_evicted_stops_and_releases),
        STORY_TEST(who_is_evicted_holds_the_lease_while_the_tree_lives),
        STORY_TEST(a_denial_tells_of_the_epoch_that_came_after),
        STORY_TEST(a_conflict_tells_of_the_epoch_that_came_after),
        STORY_TEST(who_does_not_watch_claims_once_after_a_term),
        STORY_TEST(old_restarts_of_the_child_do_not_count),
        STORY_TEST(restarts_of_the_child_come_ever_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Stepping down: in which order, by when, and what the lease has to do with it meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "story.h"

/* Leads, and is told to stop while a refresh is under way. */
static void stop_while_refreshing(void)
{
    story_lead();
    story_refresh();
    story_feed_type(ELECTION_EVENT_STOP);
}

static void a_refresh_under_way_still_counts(void **state)
{
    (void)state;
    stop_while_refreshing();
    int64_t sent = story.now;
    assert_null(story_find(ELECTION_ACTION_CANCEL_CALL));
    story.now += 10 * NS_PER_MS;
    story_grant(1);
    const struct election_action *told = story_find(ELECTION_ACTION_SET_DEADLINE);
    assert_non_null(told);
    assert_int_equal(told->deadline_ns, sent + STORY_TTL - 350 * NS_PER_MS);
}

static void a_grant_of_another_epoch_prolongs_nothing(void **state)
{
    (void)state;
    stop_while_refreshing();
    story_grant(2);
    assert_null(story_find(ELECTION_ACTION_SET_DEADLINE));
}

static void a_lease_that_is_denied_meanwhile_is_not_released(void **state)
{
    (void)state;
    stop_while_refreshing();
    story_deny(NS_PER_S, 2);
    story_gone();
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    assert_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

static void the_lease_is_refreshed_while_the_child_is_being_stopped(void **state)
{
    (void)state;
    story_lead();
    int64_t deadline = election_look(&story.election).deadline_ns;
    story_feed_type(ELECTION_EVENT_STOP);
    story_refresh();
    assert_true(story.now < deadline);
    story_feed_type(ELECTION_EVENT_UNKNOWN);
    int64_t failed = story.now;
    story_refresh();
    assert_int_equal(story.now - failed, 100 * NS_PER_MS);
}

static void nothing_is_refreshed_from_the_kill_on(void **state)
{
    (void)state;
    story_lead();
    int64_t kill_at = election_look(&story.election).kill_at_ns;
    story_feed_type(ELECTION_EVENT_STOP);
    story_refresh();
    story_feed_type(ELECTION_EVENT_UNKNOWN);
    story.now = kill_at; /* a loop that was starved until then */
    story_feed_type(ELECTION_EVENT_TIMER);
    assert_null(story_find(ELECTION_ACTION_CALL_REFRESH));
}

static void anothers_lease_is_not_refreshed(void **state)
{
    (void)state;
    story_lead();
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_INFO));
    story_deny(NS_PER_S, 2); /* the message tells of it, long before the refresh is due */
    for (int i = 0; i < 60; i++) {
        story.now += 100 * NS_PER_MS;
        story_feed_type(ELECTION_EVENT_TIMER);
        assert_null(story_find(ELECTION_ACTION_CALL_REFRESH));
    }
}

static void the_term_is_closed_at_the_kill_even_where_the_child_lives(void **state)
{
    (void)state;
    story.with.has_abdicate = false;
    story_lead();
    int64_t kill_at = election_look(&story.election).kill_at_ns;
    int64_t deadline = election_look(&story.election).deadline_ns;
    story_feed_type(ELECTION_EVENT_STOP);
    while (story_find(ELECTION_ACTION_CLOSE_TERM) == NULL) {
        story_wait();
        if (story_find(ELECTION_ACTION_CALL_REFRESH) != NULL)
            story_feed_type(ELECTION_EVENT_UNKNOWN);
    }
    assert_int_equal(story.now, kill_at);
    assert_true(story_find(ELECTION_ACTION_RUN_LOST)->until_ns < deadline);
}

static void lost_ends_by_the_kill_at_the_latest(void **state)
{
    (void)state;
    story.with.lost_timeout_ns = 60 * NS_PER_S;
    story_lead();
    int64_t kill_at = election_look(&story.election).kill_at_ns;
    story_feed_type(ELECTION_EVENT_STOP);
    story_gone();
    assert_int_equal(story_find(ELECTION_ACTION_RUN_LOST)->until_ns, kill_at);
}

static void lost_is_not_waited_for_any_longer(void **state)
{
    (void)state;
    story.with.lost_timeout_ns = NS_PER_S;
    story_lead();
    int64_t told = story.now;
    story_feed_type(ELECTION_EVENT_STOP);
    story_gone();
    story_wait();
    assert_int_equal(story.now - told, NS_PER_S);
    assert_non_null(story_find(ELECTION_ACTION_CLOSE_LOST));
}

static void the_deadline_is_cleared_before_the_release(void **state)
{
    (void)state;
    story_lead();
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_gone();
    assert_null(story_find(ELECTION_ACTION_CLEAR_DEADLINE));
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(story_find(ELECTION_ACTION_CLEAR_DEADLINE));
    story_feed_type(ELECTION_EVENT_RELEASED);
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
}

static void a_release_that_is_not_answered_is_not_repeated(void **state)
{
    (void)state;
    story_lead();
    story_feed_type(ELECTION_EVENT_STOP);
    story_gone();
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    int64_t asked = story.now;
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    story_wait();
    assert_int_equal(story.now - asked, story.with.call_timeout_ns);
    assert_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

static void the_followers_child_comes_back_after_the_term(void **state)
{
    (void)state;
    story.with.has_follower_child = true;
    story_begin();
    story_grant(1);
    story_feed_type(ELECTION_EVENT_CHILD_GONE); /* the follower's */
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_let_go();
    const struct election_action *start = story_find(ELECTION_ACTION_START_CHILD);
    assert_non_null(start);
    assert_int_equal(start->role, ELECTION_ROLE_FOLLOWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(a_refresh_under_way_still_counts),
        STORY_TEST(a_grant_of_another_epoch_prolongs_nothing),
        STORY_TEST(a_lease_that_is_denied_meanwhile_is_not_released),
        STORY_TEST(the_lease_is_refreshed_while_the_child_is_being_stopped),
        STORY_TEST(nothing_is_refreshed_from_the_kill_on),
        STORY_TEST(anothers_lease_is_not_refreshed),
        STORY_TEST(the_term_is_closed_at_the_kill_even_where_the_child_lives),
        STORY_TEST(lost_ends_by_the_kill_at_the_latest),
        STORY_TEST(lost_is_not_waited_for_any_longer),
        STORY_TEST(the_deadline_is_cleared_before_the_release),
        STORY_TEST(a_release_that_is_not_answered_is_not_repeated),
        STORY_TEST(the_followers_child_comes_back_after_the_term),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

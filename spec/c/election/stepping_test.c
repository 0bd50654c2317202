/* Stepping down: in which order, by when, and what the lease has to do with it meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "election/state.h"
#include "story.h"

/* Leads, and is told to stop while a refresh is under way. */
static void stop_while_refreshing(struct story *story)
{
    struct election_config with = story_config();
    story_lead(story, &with);
    story_refresh(story);
    story_feed_type(story, ELECTION_EVENT_STOP);
}

static void a_refresh_under_way_still_counts(void **state)
{
    struct story story;
    (void)state;
    stop_while_refreshing(&story);
    int64_t sent = story.now;
    assert_null(story_find(&story, ELECTION_ACTION_CANCEL_CALL));
    story.now += 10 * NS_PER_MS;
    story_grant(&story, 1);
    const struct election_action *told = story_find(&story, ELECTION_ACTION_SET_DEADLINE);
    assert_non_null(told);
    assert_int_equal(told->deadline_ns, sent + STORY_TTL - 350 * NS_PER_MS);
}

static void a_grant_of_another_epoch_prolongs_nothing(void **state)
{
    struct story story;
    (void)state;
    stop_while_refreshing(&story);
    story_grant(&story, 2);
    assert_null(story_find(&story, ELECTION_ACTION_SET_DEADLINE));
}

static void a_lease_that_is_denied_meanwhile_is_not_released(void **state)
{
    struct story story;
    (void)state;
    stop_while_refreshing(&story);
    story_deny(&story, NS_PER_S, 2);
    story_gone(&story);
    story_feed_type(&story, ELECTION_EVENT_LOST_DONE);
    assert_null(story_find(&story, ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(story_find(&story, ELECTION_ACTION_FINISH));
}

static void the_lease_is_refreshed_while_the_child_is_being_stopped(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    int64_t deadline = election_look(&story.election).deadline_ns;
    story_feed_type(&story, ELECTION_EVENT_STOP);
    story_refresh(&story);
    assert_true(story.now < deadline);
    story_feed_type(&story, ELECTION_EVENT_UNKNOWN);
    int64_t failed = story.now;
    story_refresh(&story);
    assert_int_equal(story.now - failed, 100 * NS_PER_MS);
}

static void nothing_is_refreshed_from_the_kill_on(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    int64_t kill_at = election_look(&story.election).kill_at_ns;
    story_feed_type(&story, ELECTION_EVENT_STOP);
    story_refresh(&story);
    story_feed_type(&story, ELECTION_EVENT_UNKNOWN);
    story.now = kill_at; /* a loop that was starved until then */
    story_feed_type(&story, ELECTION_EVENT_TIMER);
    assert_null(story_find(&story, ELECTION_ACTION_CALL_REFRESH));
}

static void anothers_lease_is_not_refreshed(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_feed_type(&story, ELECTION_EVENT_MESSAGE);
    assert_non_null(story_find(&story, ELECTION_ACTION_CALL_INFO));
    story_deny(&story, NS_PER_S, 2); /* the message tells of it, long before the refresh is due */
    for (int i = 0; i < 60; i++) {
        story.now += 100 * NS_PER_MS;
        story_feed_type(&story, ELECTION_EVENT_TIMER);
        assert_null(story_find(&story, ELECTION_ACTION_CALL_REFRESH));
    }
}

static void the_term_is_closed_at_the_kill_even_where_the_child_lives(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    with.has_abdicate = false;
    story_lead(&story, &with);
    int64_t kill_at = election_look(&story.election).kill_at_ns;
    int64_t deadline = election_look(&story.election).deadline_ns;
    story_feed_type(&story, ELECTION_EVENT_STOP);
    while (story_find(&story, ELECTION_ACTION_CLOSE_TERM) == NULL) {
        story_wait(&story);
        if (story_find(&story, ELECTION_ACTION_CALL_REFRESH) != NULL)
            story_feed_type(&story, ELECTION_EVENT_UNKNOWN);
    }
    assert_int_equal(story.now, kill_at);
    assert_true(story_find(&story, ELECTION_ACTION_RUN_LOST)->until_ns < deadline);
}

static void lost_ends_by_the_kill_at_the_latest(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    with.lost_timeout_ns = 60 * NS_PER_S;
    story_lead(&story, &with);
    int64_t kill_at = election_look(&story.election).kill_at_ns;
    story_feed_type(&story, ELECTION_EVENT_STOP);
    story_gone(&story);
    assert_int_equal(story_find(&story, ELECTION_ACTION_RUN_LOST)->until_ns, kill_at);
}

static void lost_is_not_waited_for_any_longer(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    with.lost_timeout_ns = NS_PER_S;
    story_lead(&story, &with);
    int64_t told = story.now;
    story_feed_type(&story, ELECTION_EVENT_STOP);
    story_gone(&story);
    story_wait(&story);
    assert_int_equal(story.now - told, NS_PER_S);
    assert_non_null(story_find(&story, ELECTION_ACTION_CLOSE_LOST));
}

static void the_deadline_is_cleared_before_the_release(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_feed_type(&story, ELECTION_EVENT_ABDICATE);
    story_gone(&story);
    assert_null(story_find(&story, ELECTION_ACTION_CLEAR_DEADLINE));
    story_feed_type(&story, ELECTION_EVENT_LOST_DONE);
    assert_non_null(story_find(&story, ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(story_find(&story, ELECTION_ACTION_CLEAR_DEADLINE));
    story_feed_type(&story, ELECTION_EVENT_RELEASED);
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
}

static void a_release_that_is_not_answered_is_not_repeated(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_feed_type(&story, ELECTION_EVENT_STOP);
    story_gone(&story);
    story_feed_type(&story, ELECTION_EVENT_LOST_DONE);
    int64_t asked = story.now;
    assert_non_null(story_find(&story, ELECTION_ACTION_CALL_ABDICATE));
    story_wait(&story);
    assert_int_equal(story.now - asked, with.call_timeout_ns);
    assert_null(story_find(&story, ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(story_find(&story, ELECTION_ACTION_FINISH));
}

static void the_followers_child_comes_back_after_the_term(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    with.has_follower_child = true;
    story_begin(&story, &with);
    story_grant(&story, 1);
    story_feed_type(&story, ELECTION_EVENT_CHILD_GONE); /* the follower's */
    story_feed_type(&story, ELECTION_EVENT_ABDICATE);
    story_let_go(&story);
    const struct election_action *start = story_find(&story, ELECTION_ACTION_START_CHILD);
    assert_non_null(start);
    assert_int_equal(start->role, ELECTION_ROLE_FOLLOWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refresh_under_way_still_counts),
        cmocka_unit_test(a_grant_of_another_epoch_prolongs_nothing),
        cmocka_unit_test(a_lease_that_is_denied_meanwhile_is_not_released),
        cmocka_unit_test(the_lease_is_refreshed_while_the_child_is_being_stopped),
        cmocka_unit_test(nothing_is_refreshed_from_the_kill_on),
        cmocka_unit_test(anothers_lease_is_not_refreshed),
        cmocka_unit_test(the_term_is_closed_at_the_kill_even_where_the_child_lives),
        cmocka_unit_test(lost_ends_by_the_kill_at_the_latest),
        cmocka_unit_test(lost_is_not_waited_for_any_longer),
        cmocka_unit_test(the_deadline_is_cleared_before_the_release),
        cmocka_unit_test(a_release_that_is_not_answered_is_not_repeated),
        cmocka_unit_test(the_followers_child_comes_back_after_the_term),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

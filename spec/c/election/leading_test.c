/* Leading: when it refreshes, what the answers do to the deadline, how it hears that it is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "election/state.h"
#include "story.h"

static int64_t pause_after_unknown(struct story *story)
{
    story_feed_type(story, ELECTION_EVENT_UNKNOWN);
    int64_t failed = story->now;
    story_refresh(story);
    return story->now - failed;
}

static void a_refresh_is_never_later_than_asked(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    int64_t won = story.now;
    story_refresh(&story);
    assert_in_range(story.now - won, STORY_TTL / 3 - STORY_TTL / 3 / 40, STORY_TTL / 3);
}

static void a_refresh_moves_the_deadline_on(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_refresh(&story);
    int64_t sent = story.now;
    story.now += 10 * NS_PER_MS;
    story_grant(&story, 1);
    const struct election_action *told = story_find(&story, ELECTION_ACTION_SET_DEADLINE);
    assert_non_null(told);
    assert_int_equal(told->deadline_ns, sent + STORY_TTL - 350 * NS_PER_MS);
    assert_true(told->stop_at_ns < told->kill_at_ns && told->kill_at_ns < told->deadline_ns);
    assert_true(story_told(&story, ELECTION_NOTICE_REFRESHED));
}

static void an_unknown_refresh_is_tried_again_ever_later(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_refresh(&story);
    for (int64_t pause = 100 * NS_PER_MS; pause <= 800 * NS_PER_MS; pause *= 2)
        assert_int_equal(pause_after_unknown(&story), pause);
    assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
}

static void an_answer_makes_the_next_try_quick_again(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_refresh(&story);
    (void)pause_after_unknown(&story);
    (void)pause_after_unknown(&story);
    story_grant(&story, 1);
    story_refresh(&story);
    assert_int_equal(pause_after_unknown(&story), 100 * NS_PER_MS);
}

static void a_refresh_leaves_time_for_another(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_refresh(&story);
    const struct election_action *call = story_find(&story, ELECTION_ACTION_CALL_REFRESH);
    int64_t left = election_look(&story.election).stop_at_ns - story.now;
    assert_in_range(call->until_ns - story.now, NS_PER_S, left / 2);
}

static void who_is_evicted_stops_and_releases(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_refresh(&story);
    story_feed_type(&story, ELECTION_EVENT_EVICTED);
    assert_true(story_told(&story, ELECTION_NOTICE_EVICTED));
    assert_non_null(story_find(&story, ELECTION_ACTION_STOP_CHILD));
    story_gone(&story);
    assert_int_equal(story_find(&story, ELECTION_ACTION_RUN_LOST)->reason, ELECTION_REASON_EVICTED);
    story_feed_type(&story, ELECTION_EVENT_LOST_DONE);
    assert_non_null(story_find(&story, ELECTION_ACTION_CALL_ABDICATE));
}

/* Leads under one epoch, hears of a later one, and is then granted one between the two. */
static void grant_what_is_over(struct story *story, uint64_t epoch)
{
    story_let_go(story);
    while (story_find(story, ELECTION_ACTION_CALL_CLAIM) == NULL)
        story_wait(story);
    story_grant(story, epoch);
}

static void a_denial_tells_of_the_epoch_that_came_after(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_refresh(&story);
    story_deny(&story, NS_PER_S, 5);
    grant_what_is_over(&story, 4);
    assert_true(story_told(&story, ELECTION_NOTICE_AMNESIA));
}

static void a_conflict_tells_of_the_epoch_that_came_after(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    story_refresh(&story);
    story_grant(&story, 5);
    assert_true(story_told(&story, ELECTION_NOTICE_CONFLICT));
    grant_what_is_over(&story, 4);
    assert_true(story_told(&story, ELECTION_NOTICE_AMNESIA));
}

static void who_does_not_watch_claims_once_after_a_term(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    with.monitor_leader = false;
    story_lead(&story, &with);
    story_refresh(&story);
    story_deny(&story, -1, 2);
    story_let_go(&story);
    /* What was to be told may have come while it led. */
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
    assert_non_null(story_find(&story, ELECTION_ACTION_CALL_CLAIM));
    story_deny(&story, -1, 2);
    assert_int_equal(election_look(&story.election).next_claim_ns, TIME_NEVER);
}

static void old_restarts_of_the_child_do_not_count(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    story_lead(&story, &with);
    for (unsigned i = 0; i < 3 * with.restart_max; i++) {
        int64_t later = story.now + with.restart_within_ns;
        while (story.now < later) { /* the lease is kept meanwhile */
            story_wait(&story);
            if (story_find(&story, ELECTION_ACTION_CALL_REFRESH) != NULL)
                story_grant(&story, 1);
        }
        story_feed(&story, (struct election_event){.type = ELECTION_EVENT_CHILD_GONE,
                                                   .child = {.failed = true}});
        assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
    }
}

static void restarts_of_the_child_come_ever_later(void **state)
{
    struct story story;
    struct election_config with = story_config();
    (void)state;
    with.restart_max = 4;
    story_lead(&story, &with);
    for (int64_t pause = with.restart_backoff_first_ns; pause <= 8 * with.restart_backoff_first_ns;
         pause *= 2) {
        story_feed(&story, (struct election_event){.type = ELECTION_EVENT_CHILD_GONE,
                                                   .child = {.failed = true}});
        int64_t ended = story.now;
        story_wait(&story);
        assert_non_null(story_find(&story, ELECTION_ACTION_START_CHILD));
        assert_int_equal(story.now - ended, pause);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refresh_is_never_later_than_asked),
        cmocka_unit_test(a_refresh_moves_the_deadline_on),
        cmocka_unit_test(an_unknown_refresh_is_tried_again_ever_later),
        cmocka_unit_test(an_answer_makes_the_next_try_quick_again),
        cmocka_unit_test(a_refresh_leaves_time_for_another),
        cmocka_unit_test(who_is_evicted_stops_and_releases),
        cmocka_unit_test(a_denial_tells_of_the_epoch_that_came_after),
        cmocka_unit_test(a_conflict_tells_of_the_epoch_that_came_after),
        cmocka_unit_test(who_does_not_watch_claims_once_after_a_term),
        cmocka_unit_test(old_restarts_of_the_child_do_not_count),
        cmocka_unit_test(restarts_of_the_child_come_ever_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

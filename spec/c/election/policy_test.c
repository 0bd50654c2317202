/* What the options change: pauses before acting, claims only when told, what becomes of a term when
 * its child ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "story.h"

static enum election_phase phase_of(void)
{
    return election_look(&story.election).phase;
}

static void child_ends(bool failed)
{
    story_feed(
        (struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.failed = failed}});
}

static void lead_with_policy(enum election_restart policy)
{
    story.with.restart = policy;
    story_lead();
}

static void a_pause_after_the_grant_holds_the_child_back(void **state)
{
    (void)state;
    story.with.cool_down_ns = NS_PER_S;
    story_begin();
    story_grant(1);
    int64_t granted = story.now;
    assert_int_equal(phase_of(), ELECTION_COOLING);
    assert_non_null(story_find(ELECTION_ACTION_SET_DEADLINE));
    assert_null(story_find(ELECTION_ACTION_START_CHILD));
    assert_false(election_look(&story.election).acting);
    story_wait();
    assert_int_equal(story.now - granted, NS_PER_S);
    assert_int_equal(phase_of(), ELECTION_LEADING);
    assert_non_null(story_find(ELECTION_ACTION_START_CHILD));
    assert_non_null(story_find(ELECTION_ACTION_RUN_WON));
}

static void a_term_that_is_lost_in_the_pause_never_acts(void **state)
{
    (void)state;
    story.with.cool_down_ns = 5 * NS_PER_S; /* the first refresh comes before */
    story_begin();
    story_grant(1);
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_CALL_REFRESH));
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = STORY_TTL, .epoch = 2}});
    assert_null(story_find(ELECTION_ACTION_RUN_WON));
    assert_null(story_find(ELECTION_ACTION_RUN_LOST));
    assert_int_equal(phase_of(), ELECTION_FOLLOWING);
}

static void who_does_not_watch_the_leader_claims_when_told(void **state)
{
    (void)state;
    story.with.monitor_leader = false;
    story_begin();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = 3 * NS_PER_S}});
    assert_int_equal(story.election.armed_ns, TIME_NEVER);
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_INFO));
    story_grant(1);
    assert_int_equal(phase_of(), ELECTION_LEADING);
}

static void a_permanent_child_is_restarted_after_success_too(void **state)
{
    (void)state;
    lead_with_policy(ELECTION_RESTART_PERMANENT);
    child_ends(false);
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_START_CHILD));
}

static void a_transient_child_is_restarted_only_when_it_failed(void **state)
{
    (void)state;
    lead_with_policy(ELECTION_RESTART_TRANSIENT);
    child_ends(true);
    story_wait();
    assert_non_null(story_find(ELECTION_ACTION_START_CHILD));
    child_ends(false);
    assert_int_equal(phase_of(), ELECTION_LEADING); /* its work is done */
    assert_int_equal(story.election.child.start_at_ns, TIME_NEVER);
}

static void a_temporary_childs_failure_ends_the_term(void **state)
{
    (void)state;
    lead_with_policy(ELECTION_RESTART_TEMPORARY);
    child_ends(false);
    assert_int_equal(phase_of(), ELECTION_LEADING);
    lead_with_policy(ELECTION_RESTART_TEMPORARY);
    child_ends(true);
    assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_CHILD_FAILED);
}

static void a_child_that_cannot_be_started_is_not_tried_again(void **state)
{
    (void)state;
    lead_with_policy(ELECTION_RESTART_PERMANENT);
    story_feed((struct election_event){.type = ELECTION_EVENT_CHILD_GONE,
                                       .child = {.failed = true, .unstartable = true}});
    assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_CHILD_FAILED);
}

static void a_child_without_its_epoch_ends_the_term_and_not_the_election(void **state)
{
    (void)state;
    lead_with_policy(ELECTION_RESTART_FINISH);
    story_feed((struct election_event){.type = ELECTION_EVENT_CHILD_GONE,
                                       .child = {.failed = true, .untold = true}});
    assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_CHILD_FAILED);
    assert_false(election_look(&story.election).ending);
}

static void an_election_for_one_child_ends_with_it(void **state)
{
    (void)state;
    lead_with_policy(ELECTION_RESTART_FINISH);
    child_ends(false);
    assert_true(election_look(&story.election).ending);
    story_feed_type(ELECTION_EVENT_TERM_GONE);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    story_feed_type(ELECTION_EVENT_RELEASED);
    assert_non_null(story_find(ELECTION_ACTION_FINISH));
}

/* The lease is lost, and the child is told to go; whether it did decides what follows. */
static void lose(bool kept)
{
    story_wait();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = STORY_TTL, .epoch = 2}});
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    story_feed((struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.kept = kept}});
    story_feed_type(ELECTION_EVENT_TERM_GONE);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
}

static void an_election_for_one_child_goes_on_when_only_the_term_has_ended(void **state)
{
    (void)state;
    lead_with_policy(ELECTION_RESTART_FINISH);
    lose(true);
    assert_int_equal(phase_of(), ELECTION_FOLLOWING);
    assert_false(election_look(&story.election).ending);
    lead_with_policy(ELECTION_RESTART_FINISH);
    lose(false);
    assert_int_equal(phase_of(), ELECTION_FOLLOWING);
    assert_false(election_look(&story.election).ending);
}

/* The keeper stops the child at stop_at by itself; a runtime that was held up hears first of that.
 */
static void a_child_that_its_keeper_stopped_has_not_ended_by_itself(void **state)
{
    (void)state;
    for (int policy = ELECTION_RESTART_PERMANENT; policy <= ELECTION_RESTART_FINISH; policy++) {
        lead_with_policy((enum election_restart)policy);
        story.now = story.election.stop_at_ns;
        child_ends(true);
        assert_false(election_look(&story.election).ending);
        assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_EXPIRED);
        assert_int_equal(story.election.child.restarts, 0);
    }
}

static void who_has_let_go_lets_the_others_hear_of_it_first(void **state)
{
    (void)state;
    story_lead();
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_feed_type(ELECTION_EVENT_CHILD_GONE);
    story_feed_type(ELECTION_EVENT_TERM_GONE);
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    story_feed_type(ELECTION_EVENT_RELEASED);
    int64_t let_go = story.now;
    /* Its own release comes back to it as news. */
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_null(story_find(ELECTION_ACTION_CALL_INFO));
    assert_null(story_find(ELECTION_ACTION_CALL_CLAIM));
    story_wait();
    assert_true(story.now > let_go);
    assert_true(story_find(ELECTION_ACTION_CALL_INFO) != NULL ||
                story_find(ELECTION_ACTION_CALL_CLAIM) != NULL);
}

static void a_followers_child_that_fails_is_tried_again_later(void **state)
{
    (void)state;
    story.with.has_follower_child = true;
    story.with.restart_max = 0;
    story_begin();
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = 100 * STORY_TTL}});
    child_ends(true);
    int64_t ended = story.now;
    assert_int_equal(phase_of(), ELECTION_FOLLOWING);
    story_wait();
    assert_int_equal(story.now - ended, story.with.restart_within_ns);
    assert_int_equal(story_find(ELECTION_ACTION_START_CHILD)->role, ELECTION_ROLE_FOLLOWER);
}

static int init_with_lease(int64_t lease_ns, struct crown_error *err)
{
    story.with.timing.lease_ns = lease_ns;
    return election_init(&story.election, &story.with, story.restarted, err);
}

static void a_lease_that_leaves_no_room_is_refused_at_once(void **state)
{
    struct crown_error err;
    (void)state;
    assert_int_equal(init_with_lease(STORY_TTL, &err), 0);
    assert_int_equal(init_with_lease(TIME_NEVER, &err), 0);
    assert_int_equal(init_with_lease(0, &err), 0); /* the oracle's grants say it */
    assert_int_equal(init_with_lease(1, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    story.with.timing.stop_timeout_ns = STORY_TTL;
    assert_int_equal(init_with_lease(STORY_TTL, &err), -1);
    assert_non_null(strstr(err.message, "refresh 3.33 s + stop_timeout 10 s"));
    assert_int_equal(init_with_lease(0, &err), 0);
}

static void only_so_many_restarts_can_be_counted(void **state)
{
    struct crown_error err;
    (void)state;
    story.with.restart_max = ELECTION_MAX_RESTARTS;
    assert_int_equal(election_init(&story.election, &story.with, story.restarted, &err), 0);
    story.with.restart_max++;
    assert_int_equal(election_init(&story.election, &story.with, story.restarted, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
}

/* What is shown before anything has begun. */
static void a_new_election_shows_nothing(void **state)
{
    (void)state;
    memset(&story.election, 0xff, sizeof(story.election));
    assert_int_equal(election_init(&story.election, &story.with, story.restarted, NULL), 0);
    const struct election_view view = election_look(&story.election);
    assert_int_equal(view.phase, ELECTION_INIT);
    assert_false(view.acting || view.ending);
    assert_int_equal(view.epoch, 0);
    assert_int_equal(view.terms, 0);
    assert_int_equal(view.last_reason, ELECTION_REASON_NONE);
    assert_true(view.stop_at_ns == TIME_NEVER && view.kill_at_ns == TIME_NEVER);
    assert_true(view.deadline_ns == TIME_NEVER && view.acts_at_ns == TIME_NEVER);
    assert_true(view.next_claim_ns == TIME_NEVER);
}

static void what_has_no_name_is_unknown(void **state)
{
    (void)state;
    assert_string_equal(election_phase_name(ELECTION_PHASE_COUNT), "unknown");
    assert_string_equal(election_event_name(ELECTION_EVENT_COUNT), "unknown");
    assert_string_equal(election_action_name(ELECTION_ACTION_COUNT), "unknown");
    assert_string_equal(election_reason_name(ELECTION_REASON_COUNT), "unknown");
    assert_string_equal(election_notice_name(ELECTION_NOTICE_COUNT), "unknown");
    assert_string_equal(election_phase_name(ELECTION_FINISHED), "finished");
    assert_string_equal(election_reason_name(ELECTION_REASON_NONE), "none");
}

/* When the pause after a denial ends, of a candidate with this seed. */
static int64_t pause_with(uint64_t seed)
{
    story.with.seed = seed;
    story_begin();
    story_deny(-1, 1);
    return election_look(&story.election).next_claim_ns - story.now;
}

static void a_crowd_does_not_claim_in_one_instant(void **state)
{
    (void)state;
    int64_t first = pause_with(1), second = pause_with(2);
    assert_int_not_equal(first, second);
    assert_int_equal(pause_with(1), first);
    assert_in_range(first, story.with.retry_ns, story.with.retry_ns * 11 / 10);
    assert_in_range(second, story.with.retry_ns, story.with.retry_ns * 11 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(a_pause_after_the_grant_holds_the_child_back),
        STORY_TEST(a_term_that_is_lost_in_the_pause_never_acts),
        STORY_TEST(who_does_not_watch_the_leader_claims_when_told),
        STORY_TEST(a_permanent_child_is_restarted_after_success_too),
        STORY_TEST(a_transient_child_is_restarted_only_when_it_failed),
        STORY_TEST(a_temporary_childs_failure_ends_the_term),
        STORY_TEST(a_child_that_cannot_be_started_is_not_tried_again),
        STORY_TEST(a_child_without_its_epoch_ends_the_term_and_not_the_election),
        STORY_TEST(an_election_for_one_child_ends_with_it),
        STORY_TEST(an_election_for_one_child_goes_on_when_only_the_term_has_ended),
        STORY_TEST(a_child_that_its_keeper_stopped_has_not_ended_by_itself),
        STORY_TEST(who_has_let_go_lets_the_others_hear_of_it_first),
        STORY_TEST(a_followers_child_that_fails_is_tried_again_later),
        STORY_TEST(a_lease_that_leaves_no_room_is_refused_at_once),
        STORY_TEST(only_so_many_restarts_can_be_counted),
        STORY_TEST(a_new_election_shows_nothing),
        STORY_TEST(what_has_no_name_is_unknown),
        STORY_TEST(a_crowd_does_not_claim_in_one_instant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

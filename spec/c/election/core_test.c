/* Named cases of the core, each as a short story: what happens, and which actions it must lead to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "election/state.h"

#define TTL (10 * NS_PER_S)

/* One candidate, its clock, and what the last step said. */
struct story {
    struct election election;
    struct election_actions actions;
    int64_t now;
};

static struct election_config config(void)
{
    return (struct election_config){.retry_ns = NS_PER_S,
                                    .call_timeout_ns = 5 * NS_PER_S,
                                    .lost_timeout_ns = 5 * NS_PER_S,
                                    .monitor_leader = true,
                                    .has_child = true,
                                    .has_abdicate = true,
                                    .restart_max = 2,
                                    .restart_within_ns = 60 * NS_PER_S,
                                    .restart_backoff_first_ns = 100 * NS_PER_MS,
                                    .restart_backoff_most_ns = 5 * NS_PER_S};
}

static void feed(struct story *story, struct election_event event)
{
    event.at_ns = story->now;
    if (event.attempt == 0)
        event.attempt = story->election.call.attempt;
    election_step(&story->election, &event, &story->actions);
}

static void feed_type(struct story *story, enum election_event_type type)
{
    feed(story, (struct election_event){.type = type});
}

static const struct election_action *find(const struct story *story, enum election_action_type type)
{
    for (unsigned i = 0; i < story->actions.count; i++)
        if (story->actions.item[i].type == type)
            return &story->actions.item[i];
    return NULL;
}

static void begin(struct story *story, const struct election_config *with)
{
    struct crown_error err;
    story->now = 100 * NS_PER_S;
    assert_int_equal(election_init(&story->election, with, &err), 0);
    feed_type(story, ELECTION_EVENT_START);
}

static void grant(struct story *story, uint64_t epoch)
{
    feed(story,
         (struct election_event){.type = ELECTION_EVENT_GRANTED, .grant = {TTL / 3, TTL, epoch}});
}

static void lead(struct story *story, const struct election_config *with)
{
    begin(story, with);
    grant(story, 1);
    assert_int_equal(election_look(&story->election).phase, ELECTION_LEADING);
}

/* Moves the clock to the instant that the timer was armed for. */
static void wait(struct story *story)
{
    assert_true(story->election.armed_ns != TIME_NEVER);
    story->now = story->election.armed_ns;
    feed_type(story, ELECTION_EVENT_TIMER);
}

static void r1_the_deadline_counts_from_before_the_request(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    begin(&story, &with);
    int64_t sent = story.now;
    story.now += NS_PER_S; /* a slow answer */
    grant(&story, 1);
    assert_int_equal(find(&story, ELECTION_ACTION_SET_DEADLINE)->deadline_ns,
                     sent + TTL - 350 * NS_PER_MS);
}

static void r5_release_comes_last(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    lead(&story, &with);
    feed_type(&story, ELECTION_EVENT_STOP);
    assert_non_null(find(&story, ELECTION_ACTION_STOP_CHILD));
    assert_null(find(&story, ELECTION_ACTION_CANCEL_TASKS));
    feed_type(&story, ELECTION_EVENT_CHILD_GONE);
    assert_non_null(find(&story, ELECTION_ACTION_CANCEL_TASKS));
    assert_int_equal(find(&story, ELECTION_ACTION_RUN_LOST)->reason, ELECTION_REASON_SHUTDOWN);
    assert_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
    feed_type(&story, ELECTION_EVENT_LOST_DONE);
    assert_non_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
    assert_null(find(&story, ELECTION_ACTION_FINISH));
    feed_type(&story, ELECTION_EVENT_RELEASED);
    assert_non_null(find(&story, ELECTION_ACTION_FINISH));
}

static void r6_unknown_leads_on_until_it_must_stop(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    lead(&story, &with);
    int64_t stop_at = story.election.stop_at_ns;
    while (election_look(&story.election).phase == ELECTION_LEADING) {
        wait(&story);
        if (find(&story, ELECTION_ACTION_CALL_REFRESH) != NULL)
            feed_type(&story, ELECTION_EVENT_UNKNOWN);
    }
    assert_int_equal(story.now, stop_at);
    assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_EXPIRED);
}

static void r6_a_definite_loss_stops_at_once_and_releases_nothing(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    lead(&story, &with);
    wait(&story);
    assert_non_null(find(&story, ELECTION_ACTION_CALL_REFRESH));
    feed(&story, (struct election_event){.type = ELECTION_EVENT_DENIED,
                                         .denial = {.expires_ns = NS_PER_S, .epoch = 2}});
    assert_non_null(find(&story, ELECTION_ACTION_STOP_CHILD));
    feed_type(&story, ELECTION_EVENT_CHILD_GONE);
    feed_type(&story, ELECTION_EVENT_LOST_DONE);
    assert_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
}

static void r16_a_claim_that_ended_unknown_is_released_before_the_next(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    begin(&story, &with);
    wait(&story); /* the call's own time runs out */
    assert_non_null(find(&story, ELECTION_ACTION_CANCEL_CALL));
    assert_non_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
    feed_type(&story, ELECTION_EVENT_RELEASED);
    wait(&story);
    assert_non_null(find(&story, ELECTION_ACTION_CALL_CLAIM));
}

static void r15_a_grant_of_a_call_that_was_given_up_is_released(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    begin(&story, &with);
    uint32_t late = story.election.call.attempt;
    wait(&story);
    feed_type(&story, ELECTION_EVENT_RELEASED);
    feed(&story, (struct election_event){
                     .type = ELECTION_EVENT_GRANTED, .attempt = late, .grant = {TTL / 3, TTL, 1}});
    assert_int_equal(election_look(&story.election).phase, ELECTION_FOLLOWING);
    assert_non_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
}

static void an_answer_that_comes_when_the_lease_is_nearly_over_is_given_back(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    with.call_timeout_ns = 60 * NS_PER_S;
    begin(&story, &with);
    story.now += TTL;
    grant(&story, 1);
    assert_null(find(&story, ELECTION_ACTION_START_CHILD));
    assert_non_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
}

static void r7_a_follower_claims_as_the_lease_ends(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    begin(&story, &with);
    feed(&story, (struct election_event){.type = ELECTION_EVENT_DENIED,
                                         .denial = {.expires_ns = 3 * NS_PER_S}});
    assert_in_range(story.election.armed_ns - story.now, 3 * NS_PER_S,
                    3 * NS_PER_S + 6 * NS_PER_MS);
}

static void r19_a_lost_election_is_contended_again(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    r6_a_definite_loss_stops_at_once_and_releases_nothing(state);
    lead(&story, &with);
    feed_type(&story, ELECTION_EVENT_ABDICATE);
    feed_type(&story, ELECTION_EVENT_CHILD_GONE);
    feed_type(&story, ELECTION_EVENT_LOST_DONE);
    feed_type(&story, ELECTION_EVENT_RELEASED);
    wait(&story);
    assert_non_null(find(&story, ELECTION_ACTION_CALL_CLAIM));
}

static void restarts_that_are_used_up_end_the_term_and_stand_back(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    lead(&story, &with);
    for (unsigned i = 0; i < with.restart_max; i++) {
        feed(&story,
             (struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.failed = true}});
        assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
        wait(&story);
        assert_non_null(find(&story, ELECTION_ACTION_START_CHILD));
    }
    feed(&story,
         (struct election_event){.type = ELECTION_EVENT_CHILD_GONE, .child = {.failed = true}});
    assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_CHILD_FAILED);
    feed_type(&story, ELECTION_EVENT_LOST_DONE);
    feed_type(&story, ELECTION_EVENT_RELEASED);
    assert_true(story.election.armed_ns - story.now > 59 * NS_PER_S);
}

static void the_followers_child_goes_before_the_leaders_comes(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    with.has_follower_child = true;
    begin(&story, &with);
    assert_int_equal(find(&story, ELECTION_ACTION_START_CHILD)->role, ELECTION_ROLE_FOLLOWER);
    grant(&story, 1);
    assert_non_null(find(&story, ELECTION_ACTION_STOP_CHILD));
    assert_null(find(&story, ELECTION_ACTION_RUN_WON));
    feed_type(&story, ELECTION_EVENT_CHILD_GONE);
    assert_int_equal(find(&story, ELECTION_ACTION_START_CHILD)->role, ELECTION_ROLE_LEADER);
    assert_non_null(find(&story, ELECTION_ACTION_RUN_WON));
}

static void another_epoch_in_a_refresh_is_a_conflict(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    lead(&story, &with);
    wait(&story);
    grant(&story, 3);
    assert_int_equal(find(&story, ELECTION_ACTION_EMIT)->notice, ELECTION_NOTICE_CONFLICT);
    assert_int_equal(election_look(&story.election).phase, ELECTION_STEPPING);
}

static void a_store_that_forgot_is_sat_out(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    begin(&story, &with);
    feed(&story, (struct election_event){.type = ELECTION_EVENT_DENIED,
                                         .denial = {.expires_ns = 0, .epoch = 9}});
    wait(&story);
    grant(&story, 1);
    assert_int_equal(find(&story, ELECTION_ACTION_EMIT)->notice, ELECTION_NOTICE_AMNESIA);
    assert_non_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
    feed_type(&story, ELECTION_EVENT_RELEASED);
    assert_true(story.election.armed_ns - story.now >= TTL - NS_PER_S);
    wait(&story);
    grant(&story, 2); /* its new life is believed */
    assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
}

static void a_follower_that_leaves_says_so_at_its_end(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    with.leaves = true;
    begin(&story, &with);
    feed(&story, (struct election_event){.type = ELECTION_EVENT_DENIED,
                                         .denial = {.expires_ns = TTL, .epoch = 1}});
    feed_type(&story, ELECTION_EVENT_STOP);
    assert_non_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
    assert_null(find(&story, ELECTION_ACTION_FINISH));
    assert_true(election_look(&story.election).ending);
    feed_type(&story, ELECTION_EVENT_RELEASED);
    assert_non_null(find(&story, ELECTION_ACTION_FINISH));
}

static void a_follower_that_does_not_leave_ends_at_once(void **state)
{
    struct story story;
    struct election_config with = config();
    (void)state;
    begin(&story, &with);
    feed(&story, (struct election_event){.type = ELECTION_EVENT_DENIED,
                                         .denial = {.expires_ns = TTL, .epoch = 1}});
    feed_type(&story, ELECTION_EVENT_STOP);
    assert_null(find(&story, ELECTION_ACTION_CALL_ABDICATE));
    assert_non_null(find(&story, ELECTION_ACTION_FINISH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r1_the_deadline_counts_from_before_the_request),
        cmocka_unit_test(r5_release_comes_last),
        cmocka_unit_test(r6_unknown_leads_on_until_it_must_stop),
        cmocka_unit_test(r6_a_definite_loss_stops_at_once_and_releases_nothing),
        cmocka_unit_test(r16_a_claim_that_ended_unknown_is_released_before_the_next),
        cmocka_unit_test(r15_a_grant_of_a_call_that_was_given_up_is_released),
        cmocka_unit_test(an_answer_that_comes_when_the_lease_is_nearly_over_is_given_back),
        cmocka_unit_test(r7_a_follower_claims_as_the_lease_ends),
        cmocka_unit_test(r19_a_lost_election_is_contended_again),
        cmocka_unit_test(restarts_that_are_used_up_end_the_term_and_stand_back),
        cmocka_unit_test(the_followers_child_goes_before_the_leaders_comes),
        cmocka_unit_test(another_epoch_in_a_refresh_is_a_conflict),
        cmocka_unit_test(a_store_that_forgot_is_sat_out),
        cmocka_unit_test(a_follower_that_leaves_says_so_at_its_end),
        cmocka_unit_test(a_follower_that_does_not_leave_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

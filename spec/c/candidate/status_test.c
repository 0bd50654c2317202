/* What a candidate shows of itself and of who leads, and what it tells of that: once for each. */
#include "candidate/status.h"

#include "lone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared.h"
#include "candidate/leader.h"
#include "candidate/outage.h"
#include "candidate/workload.h"

#define TTL_NS (12 * NS_PER_S)

static int64_t begun_ns; /* on the loop's clock, which stands still */

static const struct election_config *config_of(int64_t ttl_ns)
{
    static struct election_config config;
    config.ttl_ns = ttl_ns;
    return &config;
}

static int open_lone(void **state)
{
    if (lone_open(state) < 0)
        return -1;
    loop_set_virtual(lone.env.loop, true);
    begun_ns = loop_now(lone.env.loop);
    lone.candidate.answered_ns = TIME_NEVER;
    lone.candidate.leader_expires_ns = TIME_NEVER;
    lone.candidate.election = (struct election){.config = config_of(TTL_NS),
                                                .phase = ELECTION_FOLLOWING,
                                                .epoch = 7,
                                                .stage = ELECTION_STAGE_ACTING,
                                                .deadline_ns = begun_ns + TTL_NS};
    return 0;
}

static int close_lone(void **state)
{
    outage_forget(&lone.candidate);
    shared_release(lone.candidate.leader);
    shared_release(lone.candidate.told.leader);
    return lone_close(state);
}

static struct candidate_status shown(void)
{
    struct candidate_status status;
    candidate_status(&lone.candidate, &status);
    return status;
}

/* The store, since the test began. */
static void fall_silent(void)
{
    lone.candidate.outage = calloc(1, sizeof(*lone.candidate.outage));
    assert_non_null(lone.candidate.outage);
    lone.candidate.outage->since_ns = begun_ns;
}

static void be(enum election_phase phase)
{
    lone.candidate.election.phase = phase;
}

static void pass(int64_t ns)
{
    loop_advance(lone.env.loop, ns);
}

static unsigned told(enum telemetry_event event)
{
    return (unsigned)telemetry_count(lone.env.telemetry, event);
}

static void a_follower_shows_the_leader_that_the_store_named(void **state)
{
    (void)state;
    assert_null(shown().leader);
    leader_remember(&lone.candidate, "other", 9, 5 * NS_PER_S);
    assert_string_equal(shown().leader, "other");
    assert_int_equal(shown().leader_epoch, 9);
    assert_int_equal(shown().expires_at_ns, begun_ns + 5 * NS_PER_S);
    leader_remember(&lone.candidate, "other", 10, -1);
    assert_string_equal(shown().leader, "other");
    assert_int_equal(shown().leader_epoch, 10);
    assert_int_equal(shown().expires_at_ns, TIME_NEVER);
    leader_remember(&lone.candidate, "other", 10, 0);
    assert_int_equal(shown().expires_at_ns, begun_ns);
    leader_remember(&lone.candidate, NULL, 10, 3);
    assert_null(shown().leader);
    assert_int_equal(shown().leader_epoch, 10);
}

static void a_leader_shows_itself_also_while_it_cools_down(void **state)
{
    (void)state;
    leader_remember(&lone.candidate, "other", 9, 5 * NS_PER_S);
    const enum election_phase phases[] = {ELECTION_LEADING, ELECTION_COOLING};
    for (unsigned i = 0; i < 2; i++) {
        be(phases[i]);
        assert_string_equal(shown().leader, "one");
        assert_int_equal(shown().leader_epoch, 7);
        assert_int_equal(shown().expires_at_ns, begun_ns + TTL_NS);
    }
    be(ELECTION_STEPPING);
    assert_string_equal(shown().leader, "other");
    be(ELECTION_LEADING);
    lone.candidate.key = (char *)"lone\nown";
    assert_string_equal(shown().leader, "own");
    assert_string_equal(candidate_node(&lone.candidate), "own");
}

static void a_follower_doubts_and_a_leader_does_not(void **state)
{
    (void)state;
    assert_false(shown().doubted);
    lone.candidate.doubted = true;
    assert_true(shown().doubted);
    be(ELECTION_LEADING);
    assert_false(shown().doubted);
}

/* Until the lease is over that it had at the store's last answer. */
static void a_leader_is_not_known_any_more_when_the_store_is_silent_for_long(void **state)
{
    (void)state;
    leader_remember(&lone.candidate, "other", 9, 5 * NS_PER_S);
    pass(5 * NS_PER_S);
    assert_string_equal(shown().leader, "other"); /* the store answers */
    fall_silent();
    assert_null(shown().leader);
    assert_int_equal(shown().expires_at_ns, TIME_NEVER);
    assert_int_equal(shown().leader_epoch, 9);
    leader_remember(&lone.candidate, "other", 9, 1);
    assert_string_equal(shown().leader, "other");
}

static void a_lease_of_which_the_store_tells_no_end_lasts_a_ttl_from_its_answer(void **state)
{
    (void)state;
    leader_remember(&lone.candidate, "other", 9, -1);
    fall_silent();
    pass(100 * NS_PER_S);
    assert_string_equal(shown().leader, "other"); /* it has never answered */
    lone.candidate.answered_ns = loop_now(lone.env.loop);
    pass(TTL_NS - 1);
    assert_string_equal(shown().leader, "other");
    pass(1);
    assert_null(shown().leader);
    lone.candidate.election.config = config_of(0);
    assert_string_equal(shown().leader, "other");
    pass(18 * NS_PER_S - 1);
    assert_string_equal(shown().leader, "other");
    pass(1);
    assert_null(shown().leader);
    be(ELECTION_LEADING);
    assert_string_equal(shown().leader, "one");
}

static void a_command_is_shown_with_its_role(void **state)
{
    (void)state;
    struct workload workload = {.role = ELECTION_ROLE_LEADER, .child.pid = 42};
    assert_int_equal(shown().child_pid, 0);
    assert_false(shown().child_lives_on || shown().child_unfenced || shown().child_is_leader);
    lone.commands.workload = &workload;
    assert_int_equal(shown().child_pid, 42);
    assert_true(shown().child_is_leader);
    assert_false(shown().child_lives_on || shown().child_unfenced);
    workload.unfenced = true;
    assert_true(shown().child_unfenced);
    workload.role = ELECTION_ROLE_FOLLOWER;
    assert_false(shown().child_is_leader);
    lone.commands.workload = NULL;
    lone.commands.standing = &workload;
    assert_int_equal(shown().child_pid, 42);
    assert_true(shown().child_lives_on);
    assert_false(shown().child_is_leader);
    lone.commands.standing = NULL;
}

static void a_term_remains_until_its_deadline(void **state)
{
    (void)state;
    assert_true(candidate_term_remaining(&lone.candidate, 7) == 0);
    be(ELECTION_LEADING);
    assert_true(candidate_term_remaining(&lone.candidate, 7) == 12);
    assert_true(candidate_term_remaining(&lone.candidate, 8) == 0);
    assert_true(candidate_term_remaining(&lone.candidate, 6) == 0);
    assert_int_equal(candidate_deadline(&lone.candidate), begun_ns + TTL_NS);
    pass(TTL_NS - NS_PER_S / 2);
    assert_true(candidate_term_remaining(&lone.candidate, 7) == 0.5);
    pass(NS_PER_S);
    assert_true(candidate_term_remaining(&lone.candidate, 7) == 0);
    lone.candidate.election.deadline_ns = TIME_NEVER;
    assert_true(isinf(candidate_term_remaining(&lone.candidate, 7)));
    assert_true(candidate_term_remaining(&lone.candidate, 8) == 0);
}

static void a_phase_has_the_word_that_users_know(void **state)
{
    (void)state;
    const struct {
        enum election_phase phase;
        const char *word;
    } words[] = {{ELECTION_INIT, "init"},          {ELECTION_FOLLOWING, "following"},
                 {ELECTION_COOLING, "cooling"},    {ELECTION_LEADING, "leading"},
                 {ELECTION_STEPPING, "finishing"}, {ELECTION_FINISHED, "finishing"}};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_string_equal(candidate_phase_name(words[i].phase), words[i].word);
}

/* --- who leads */

static void each_leader_is_told_of_once(void **state)
{
    (void)state;
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 0);
    leader_remember(&lone.candidate, "other", 9, -1);
    leader_tell(&lone.candidate);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 1);
    leader_remember(&lone.candidate, "other", 10, -1);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 2);
    leader_remember(&lone.candidate, "other", 9, -1);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 2);
    leader_remember(&lone.candidate, "third", 9, -1);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 3);
    leader_remember(&lone.candidate, NULL, 9, -1);
    leader_tell(&lone.candidate);
    leader_remember(&lone.candidate, "third", 9, -1);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 3);
}

static void an_epoch_that_comes_to_be_known_later_is_no_other_leader(void **state)
{
    (void)state;
    leader_remember(&lone.candidate, "other", 0, -1);
    leader_tell(&lone.candidate);
    leader_remember(&lone.candidate, "other", 9, -1);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 1);
    leader_remember(&lone.candidate, "other", 10, -1);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 2);
}

static void the_own_term_is_told_of_when_it_begins(void **state)
{
    (void)state;
    be(ELECTION_COOLING);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 0);
    be(ELECTION_LEADING);
    leader_tell(&lone.candidate);
    assert_int_equal(told(TELEMETRY_LEADERSHIP_CHANGED), 1);
    assert_string_equal(lone.candidate.told.leader, "one");
    assert_int_equal(lone.candidate.told.epoch, 7);
}

static void after_the_own_term_nobody_is_known_to_lead(void **state)
{
    (void)state;
    leader_remember(&lone.candidate, "one", 7, 5);
    leader_forget_own(&lone.candidate);
    assert_null(shown().leader);
    assert_int_equal(shown().leader_epoch, 7);
    assert_int_equal(shown().expires_at_ns, TIME_NEVER);
    leader_remember(&lone.candidate, "other", 8, -1);
    leader_forget_own(&lone.candidate);
    assert_string_equal(shown().leader, "other");
}

/* --- whether the store answers */

static void gives_no_answer(const char *message, const char *code)
{
    outage_report(&lone.candidate, "claim", message, code);
}

static void each_reason_is_told_once_in_an_outage(void **state)
{
    (void)state;
    gives_no_answer("one", NULL);
    gives_no_answer("one", NULL);
    gives_no_answer("two", NULL);
    gives_no_answer("one", NULL);
    assert_int_equal(told(TELEMETRY_ORACLE_ERROR), 2);
    assert_string_equal(shown().failure, "one");
    assert_int_equal(shown().failing_since_ns, begun_ns);
    pass(NS_PER_S);
    gives_no_answer("three", NULL);
    assert_int_equal(shown().failing_since_ns, begun_ns);
    outage_over(&lone.candidate);
    assert_null(shown().failure);
    assert_int_equal(shown().failing_since_ns, TIME_NEVER);
    assert_int_equal(shown().answered_ns, begun_ns + NS_PER_S);
    gives_no_answer("one", NULL);
    assert_int_equal(told(TELEMETRY_ORACLE_ERROR), 4);
    assert_int_equal(shown().failing_since_ns, begun_ns + NS_PER_S);
}

static void sixteen_reasons_are_told_of_and_no_more(void **state)
{
    (void)state;
    char reason[] = "reason a";
    for (unsigned i = 0; i < 20; i++) {
        reason[sizeof(reason) - 2] = (char)('a' + i);
        gives_no_answer(reason, NULL);
    }
    assert_int_equal(told(TELEMETRY_ORACLE_ERROR), 16);
    assert_string_equal(shown().failure, "reason t");
}

static void a_failure_without_a_reason_says_so(void **state)
{
    (void)state;
    gives_no_answer(NULL, NULL);
    assert_string_equal(shown().failure, "(no message)");
    assert_int_equal(told(TELEMETRY_ORACLE_ERROR), 1);
}

static void a_store_may_answer_that_it_knows_nothing(void **state)
{
    (void)state;
    gives_no_answer("one", "store");
    assert_true(shown().answers);
    gives_no_answer("one", "usage");
    assert_false(shown().answers);
    gives_no_answer("one", "store");
    gives_no_answer("one", NULL);
    assert_false(shown().answers);
    gives_no_answer("one", "store");
    outage_over(&lone.candidate);
    assert_false(shown().answers);
}

#define LONE_TEST(name) cmocka_unit_test_setup_teardown(name, open_lone, close_lone)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LONE_TEST(a_follower_shows_the_leader_that_the_store_named),
        LONE_TEST(a_leader_shows_itself_also_while_it_cools_down),
        LONE_TEST(a_follower_doubts_and_a_leader_does_not),
        LONE_TEST(a_leader_is_not_known_any_more_when_the_store_is_silent_for_long),
        LONE_TEST(a_lease_of_which_the_store_tells_no_end_lasts_a_ttl_from_its_answer),
        LONE_TEST(a_command_is_shown_with_its_role),
        LONE_TEST(a_term_remains_until_its_deadline),
        LONE_TEST(a_phase_has_the_word_that_users_know),
        LONE_TEST(each_leader_is_told_of_once),
        LONE_TEST(an_epoch_that_comes_to_be_known_later_is_no_other_leader),
        LONE_TEST(the_own_term_is_told_of_when_it_begins),
        LONE_TEST(after_the_own_term_nobody_is_known_to_lead),
        LONE_TEST(each_reason_is_told_once_in_an_outage),
        LONE_TEST(sixteen_reasons_are_told_of_and_no_more),
        LONE_TEST(a_failure_without_a_reason_says_so),
        LONE_TEST(a_store_may_answer_that_it_knows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What follows the end of a child: by its role, the restart policy, how it ended, and how often it
 * has ended before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "story.h"

#define WITHIN (60 * NS_PER_S)
#define FIRST (100 * NS_PER_MS)
#define MOST (350 * NS_PER_MS)
#define NONE (-1)

/* How it ends. A code, a signal, and SIGKILL by others are one to the core. */
enum way { WELL, BADLY, UNSTARTABLE, UNTOLD, WAYS };

enum follows {
    STARTS,     /* again, after a pause that is doubled each time */
    IS_AWAITED, /* again, when `within` is over: the count begins anew */
    GOES_ON,    /* without it */
    FAILS,      /* the term ends */
    ENDS,       /* the election ends */
};

static enum election_phase phase_of(void)
{
    return election_look(&story.election).phase;
}

static void configure(enum election_restart policy)
{
    story.with.has_follower_child = true;
    story.with.restart = policy;
    story.with.restart_max = 3;
    story.with.restart_within_ns = WITHIN;
    story.with.restart_backoff_first_ns = FIRST;
    story.with.restart_backoff_most_ns = MOST;
}

static void assert_started(enum election_role role)
{
    const struct election_action *start = story_find(ELECTION_ACTION_START_CHILD);
    const struct election *election = &story.election;
    bool leads = role == ELECTION_ROLE_LEADER;
    assert_non_null(start);
    assert_int_equal(start->role, role);
    assert_int_equal(start->stop_at_ns, leads ? election->stop_at_ns : TIME_NEVER);
    assert_int_equal(start->kill_at_ns, leads ? election->kill_at_ns : TIME_NEVER);
    assert_int_equal(start->deadline_ns, leads ? election->deadline_ns : TIME_NEVER);
}

/* Its child runs. */
static void begin(enum election_role role, enum election_restart policy)
{
    configure(policy);
    if (role == ELECTION_ROLE_LEADER) {
        story_lead();
    } else {
        story_begin();
        story_deny(10000 * NS_PER_S, 1);
    }
    assert_started(role);
}

static void end_child(enum way way)
{
    story_feed((struct election_event){.type = ELECTION_EVENT_CHILD_GONE,
                                       .child = {.failed = way != WELL,
                                                 .unstartable = way == UNSTARTABLE,
                                                 .untold = way == UNTOLD}});
}

static void assert_starts_in(int64_t ns)
{
    assert_int_equal(story.election.child.start_at_ns, ns == NONE ? TIME_NEVER : story.now + ns);
}

static void start_again(enum election_role role)
{
    story.now = story.election.child.start_at_ns;
    story_feed_type(ELECTION_EVENT_TIMER);
    assert_started(role);
}

static int64_t pause_of(enum follows follows, unsigned before)
{
    static const int64_t pauses[] = {FIRST, 2 * FIRST, MOST};
    if (follows == IS_AWAITED)
        return WITHIN;
    return follows == STARTS ? pauses[before] : NONE;
}

static void assert_follows(enum election_role role, enum follows follows, unsigned before)
{
    const struct election_view view = election_look(&story.election);
    bool leads = role == ELECTION_ROLE_LEADER;
    bool over = follows == FAILS || follows == ENDS;
    assert_starts_in(pause_of(follows, before));
    assert_false(story.election.child.running);
    assert_int_equal(view.ending, follows == ENDS);
    if (!over)
        assert_int_equal(view.phase, leads ? ELECTION_LEADING : ELECTION_FOLLOWING);
    if (over)
        assert_int_equal(view.last_reason,
                         follows == ENDS ? ELECTION_REASON_SHUTDOWN : ELECTION_REASON_CHILD_FAILED);
}

struct row {
    enum election_role role;
    enum election_restart policy;
    enum way way;
    enum follows first, last; /* the first time; when three restarts were used up */
};

#define LEADER ELECTION_ROLE_LEADER
#define FOLLOWER ELECTION_ROLE_FOLLOWER
#define PERMANENT ELECTION_RESTART_PERMANENT
#define TRANSIENT ELECTION_RESTART_TRANSIENT
#define TEMPORARY ELECTION_RESTART_TEMPORARY
#define FINISH ELECTION_RESTART_FINISH

/* `last` is what `first` is where nothing is started again. */
static const struct row table[] = {
    {LEADER, PERMANENT, WELL, STARTS, FAILS},
    {LEADER, PERMANENT, BADLY, STARTS, FAILS},
    {LEADER, PERMANENT, UNSTARTABLE, FAILS, FAILS},
    {LEADER, PERMANENT, UNTOLD, FAILS, FAILS},
    {LEADER, TRANSIENT, WELL, GOES_ON, GOES_ON},
    {LEADER, TRANSIENT, BADLY, STARTS, FAILS},
    {LEADER, TRANSIENT, UNSTARTABLE, FAILS, FAILS},
    {LEADER, TRANSIENT, UNTOLD, FAILS, FAILS},
    {LEADER, TEMPORARY, WELL, GOES_ON, GOES_ON},
    {LEADER, TEMPORARY, BADLY, FAILS, FAILS},
    {LEADER, TEMPORARY, UNSTARTABLE, FAILS, FAILS},
    {LEADER, TEMPORARY, UNTOLD, FAILS, FAILS},
    {LEADER, FINISH, WELL, ENDS, ENDS},
    {LEADER, FINISH, BADLY, ENDS, ENDS},
    {LEADER, FINISH, UNSTARTABLE, ENDS, ENDS},
    {LEADER, FINISH, UNTOLD, FAILS, FAILS},
    {FOLLOWER, PERMANENT, WELL, STARTS, IS_AWAITED},
    {FOLLOWER, PERMANENT, BADLY, STARTS, IS_AWAITED},
    {FOLLOWER, PERMANENT, UNSTARTABLE, IS_AWAITED, IS_AWAITED},
    {FOLLOWER, TRANSIENT, WELL, GOES_ON, GOES_ON},
    {FOLLOWER, TRANSIENT, BADLY, STARTS, IS_AWAITED},
    {FOLLOWER, TRANSIENT, UNSTARTABLE, IS_AWAITED, IS_AWAITED},
    {FOLLOWER, TEMPORARY, WELL, GOES_ON, GOES_ON},
    {FOLLOWER, TEMPORARY, BADLY, GOES_ON, GOES_ON},
    {FOLLOWER, TEMPORARY, UNSTARTABLE, GOES_ON, GOES_ON},
    {FOLLOWER, FINISH, WELL, GOES_ON, GOES_ON},
    {FOLLOWER, FINISH, BADLY, GOES_ON, GOES_ON},
    {FOLLOWER, FINISH, UNSTARTABLE, GOES_ON, GOES_ON},
};
#define ROWS (sizeof(table) / sizeof(table[0]))

static void the_first_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(story_open(NULL), 0);
        begin(table[i].role, table[i].policy);
        end_child(table[i].way);
        assert_follows(table[i].role, table[i].first, 0);
    }
}

static void each_further_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &table[i];
        if (row->first != STARTS)
            continue;
        assert_int_equal(story_open(NULL), 0);
        begin(row->role, row->policy);
        for (unsigned before = 0; before < 3; before++) {
            end_child(row->way);
            assert_follows(row->role, STARTS, before);
            start_again(row->role);
        }
        end_child(row->way);
        assert_follows(row->role, row->last, 3);
    }
}

/* What was counted before it is waited for counts no more. */
static void a_followers_count_begins_anew_after_the_wait(void **state)
{
    (void)state;
    static const enum way ways[] = {BADLY, UNSTARTABLE};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(story_open(NULL), 0);
        begin(FOLLOWER, PERMANENT);
        for (unsigned before = 0; before < 3; before++) {
            end_child(BADLY);
            start_again(FOLLOWER);
        }
        end_child(ways[i]);
        assert_int_equal(story.election.child.restarts, 0);
        assert_follows(FOLLOWER, IS_AWAITED, 3);
        start_again(FOLLOWER);
        end_child(BADLY);
        assert_follows(FOLLOWER, STARTS, 0);
    }
}

/* One that cannot be started uses up nothing. */
static void a_failed_start_is_no_restart(void **state)
{
    (void)state;
    begin(FOLLOWER, PERMANENT);
    end_child(UNSTARTABLE);
    assert_int_equal(story.election.child.restarts, 0);
    start_again(FOLLOWER);
    end_child(BADLY);
    assert_int_equal(story.election.child.restarts, 1);
    assert_follows(FOLLOWER, STARTS, 0);
}

#define TICK (INT64_C(1) << 26) /* to which instants of restarts are rounded */

/* One of so long ago counts, one of a moment longer does not. */
static void restarts_count_for_as_long_as_is_said(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        assert_int_equal(story_open(NULL), 0);
        begin(FOLLOWER, PERMANENT);
        story.with.restart_within_ns = 100 * TICK;
        story.with.restart_max = 1;
        end_child(BADLY);
        int64_t first = story.now;
        start_again(FOLLOWER);
        story.now = first + (100 + more) * TICK;
        end_child(BADLY);
        assert_starts_in(more ? FIRST : 100 * TICK);
    }
}

/* Those that still count stay in their order, the oldest first. */
static void an_old_restart_makes_room_for_one(void **state)
{
    (void)state;
    begin(FOLLOWER, PERMANENT);
    end_child(BADLY);
    int64_t first = story.now;
    start_again(FOLLOWER);
    story.now = first + WITHIN / 2;
    end_child(BADLY);
    start_again(FOLLOWER);
    story.now = first + WITHIN + 2 * TICK;
    end_child(BADLY); /* the first one is forgotten, the second is not */
    assert_int_equal(story.election.child.restarts, 2);
    assert_starts_in(2 * FIRST);
    start_again(FOLLOWER);
    story.now = first + WITHIN + WITHIN / 2 + 2 * TICK;
    end_child(BADLY);
    assert_int_equal(story.election.child.restarts, 2);
}

static void without_restarts_the_first_end_is_the_last(void **state)
{
    (void)state;
    configure(PERMANENT);
    story.with.restart_max = 0;
    story_lead();
    end_child(BADLY);
    assert_follows(LEADER, FAILS, 0);
}

static void there_is_room_for_sixteen(void **state)
{
    (void)state;
    configure(PERMANENT);
    story.with.restart_max = ELECTION_MAX_RESTARTS;
    story.with.restart_backoff_first_ns = story.with.restart_backoff_most_ns = NS_PER_MS;
    story_begin();
    story_deny(10000 * NS_PER_S, 1);
    for (unsigned i = 0; i < ELECTION_MAX_RESTARTS; i++) {
        end_child(BADLY);
        assert_starts_in(NS_PER_MS);
        start_again(FOLLOWER);
    }
    end_child(BADLY);
    assert_starts_in(WITHIN);
}

/* The store says that the leader has gone, and its lease is had. */
static void hear_and_win(void)
{
    story_feed_type(ELECTION_EVENT_MESSAGE);
    assert_non_null(story_find(ELECTION_ACTION_CALL_INFO));
    story_grant(2);
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
}

/* A term begins with all its restarts, whatever the follower's child has used up. */
static void the_leaders_count_begins_with_its_term(void **state)
{
    (void)state;
    begin(FOLLOWER, PERMANENT);
    for (unsigned i = 0; i < 3; i++) {
        end_child(BADLY);
        start_again(FOLLOWER);
    }
    hear_and_win();
    end_child(BADLY); /* it was told to */
    assert_started(LEADER);
    end_child(BADLY);
    assert_follows(LEADER, STARTS, 0);
}

static void the_followers_count_begins_with_the_next_ones_term(void **state)
{
    (void)state;
    begin(LEADER, PERMANENT);
    for (unsigned i = 0; i < 3; i++) {
        end_child(BADLY);
        start_again(LEADER);
    }
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_let_go();
    assert_started(FOLLOWER);
    end_child(BADLY);
    assert_follows(FOLLOWER, STARTS, 0);
}

/* Told to, or at the instant from which its keeper stops it: the policy says nothing of that. */
static void an_end_that_was_asked_for_is_no_failure(void **state)
{
    (void)state;
    static const enum election_restart policies[] = {PERMANENT, TRANSIENT, TEMPORARY, FINISH};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(story_open(NULL), 0);
        begin(LEADER, policies[i]);
        story.now = story.election.stop_at_ns;
        end_child(BADLY);
        assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_EXPIRED);
        assert_false(election_look(&story.election).ending);
        assert_starts_in(NONE);

        assert_int_equal(story_open(NULL), 0);
        begin(LEADER, policies[i]);
        story.now = story.election.stop_at_ns - 1;
        end_child(BADLY);
        assert_int_not_equal(election_look(&story.election).last_reason, ELECTION_REASON_EXPIRED);

        assert_int_equal(story_open(NULL), 0);
        begin(LEADER, policies[i]);
        story_feed_type(ELECTION_EVENT_ABDICATE);
        assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
        end_child(BADLY);
        assert_int_equal(election_look(&story.election).last_reason, ELECTION_REASON_ABDICATED);
        assert_false(election_look(&story.election).ending);
    }
}

/* The end of a term is no instant of a follower's. */
static void a_followers_child_has_no_instant_to_end_at(void **state)
{
    (void)state;
    begin(FOLLOWER, PERMANENT);
    story.election.stop_at_ns = story.now - 1; /* of a term that is over */
    end_child(BADLY);
    assert_follows(FOLLOWER, STARTS, 0);
}

static void what_has_ended_already_ends_no_more(void **state)
{
    (void)state;
    static const enum election_role roles[] = {LEADER, FOLLOWER};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(story_open(NULL), 0);
        begin(roles[i], PERMANENT);
        end_child(BADLY);
        int64_t start_ns = story.election.child.start_at_ns;
        story.now += NS_PER_MS;
        end_child(BADLY);
        assert_int_equal(story.election.child.start_at_ns, start_ns);
        assert_int_equal(story.election.child.restarts, 1);
    }
}

/* A term that is lost before it could act: the follower's child has not ended yet. */
static void a_child_is_started_when_the_one_before_is_gone(void **state)
{
    (void)state;
    begin(FOLLOWER, PERMANENT);
    hear_and_win();
    assert_null(story_find(ELECTION_ACTION_START_CHILD));
    story_refresh();
    story_deny(10000 * NS_PER_S, 3);
    assert_int_equal(phase_of(), ELECTION_FOLLOWING);
    assert_null(story_find(ELECTION_ACTION_START_CHILD));
    end_child(BADLY);
    assert_started(FOLLOWER);
    end_child(BADLY);
    assert_follows(FOLLOWER, STARTS, 0);
}

/* Else the timer would be armed for it, again and again. */
static void no_start_is_awaited_while_a_lease_is_given_back(void **state)
{
    (void)state;
    begin(FOLLOWER, PERMANENT);
    hear_and_win();
    story_feed_type(ELECTION_EVENT_ABDICATE); /* before it acts: the leader's child was due */
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_starts_in(NONE);

    assert_int_equal(story_open(NULL), 0);
    story.with.cool_down_ns = NS_PER_S;
    begin(FOLLOWER, PERMANENT);
    story_feed_type(ELECTION_EVENT_MESSAGE);
    story_grant(2);
    assert_int_equal(phase_of(), ELECTION_COOLING);
    story_feed_type(ELECTION_EVENT_ABDICATE);
    end_child(BADLY); /* by itself */
    assert_int_equal(phase_of(), ELECTION_STEPPING);
    assert_starts_in(NONE);

    assert_int_equal(story_open(NULL), 0);
    story.with.leaves = true;
    begin(FOLLOWER, PERMANENT);
    end_child(BADLY);
    story_feed_type(ELECTION_EVENT_STOP);
    assert_non_null(story_find(ELECTION_ACTION_CALL_ABDICATE));
    assert_starts_in(NONE);
}

static void a_follower_without_a_child_starts_none(void **state)
{
    (void)state;
    configure(PERMANENT);
    story.with.has_follower_child = false;
    story_lead();
    story_feed_type(ELECTION_EVENT_ABDICATE);
    story_let_go();
    assert_int_equal(phase_of(), ELECTION_FOLLOWING);
    assert_null(story_find(ELECTION_ACTION_START_CHILD));
    assert_starts_in(NONE);
}

static void nothing_is_started_while_the_election_ends(void **state)
{
    (void)state;
    begin(FOLLOWER, PERMANENT);
    story_feed_type(ELECTION_EVENT_STOP);
    assert_non_null(story_find(ELECTION_ACTION_STOP_CHILD));
    end_child(BADLY);
    assert_starts_in(NONE);
    assert_null(story_find(ELECTION_ACTION_START_CHILD));
    assert_int_equal(phase_of(), ELECTION_FINISHED);
}

/* Once, and with an end: as long as is said, else five seconds. */
static void a_child_is_told_once_to_end(void **state)
{
    (void)state;
    for (int said = 0; said < 2; said++) {
        assert_int_equal(story_open(NULL), 0);
        begin(FOLLOWER, PERMANENT);
        story.election.stop_timeout_ns = said ? 7 * NS_PER_S : 0;
        story_feed_type(ELECTION_EVENT_STOP);
        const struct election_action *stop = story_find(ELECTION_ACTION_STOP_CHILD);
        assert_non_null(stop);
        assert_int_equal(stop->kill_at_ns, story.now + (said ? 7 : 5) * NS_PER_S);
        story_feed_type(ELECTION_EVENT_STOP);
        assert_null(story_find(ELECTION_ACTION_STOP_CHILD));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(the_first_end),
        STORY_TEST(each_further_end),
        STORY_TEST(a_followers_count_begins_anew_after_the_wait),
        STORY_TEST(a_failed_start_is_no_restart),
        STORY_TEST(restarts_count_for_as_long_as_is_said),
        STORY_TEST(an_old_restart_makes_room_for_one),
        STORY_TEST(without_restarts_the_first_end_is_the_last),
        STORY_TEST(there_is_room_for_sixteen),
        STORY_TEST(the_leaders_count_begins_with_its_term),
        STORY_TEST(the_followers_count_begins_with_the_next_ones_term),
        STORY_TEST(an_end_that_was_asked_for_is_no_failure),
        STORY_TEST(a_followers_child_has_no_instant_to_end_at),
        STORY_TEST(what_has_ended_already_ends_no_more),
        STORY_TEST(a_child_is_started_when_the_one_before_is_gone),
        STORY_TEST(no_start_is_awaited_while_a_lease_is_given_back),
        STORY_TEST(a_follower_without_a_child_starts_none),
        STORY_TEST(nothing_is_started_while_the_election_ends),
        STORY_TEST(a_child_is_told_once_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Elections that begin at once: so many claims in a turn of the loop, so many at once at the
 * stores. */
#include "candidate/starts.h"

#include "whole.h"

#include <stdio.h>
#include <stdlib.h>

#include "lua/vm.h"

#define MANY 3000 /* more than are asked for at once */
#define TURN 512
#define CROWD 1024

static struct candidate *many[MANY];
static char names[MANY][16];

static int close_many(void **state)
{
    whole.candidate = NULL;
    for (unsigned i = 0; i < MANY; i++) {
        candidate_free(many[i]);
        many[i] = NULL;
    }
    return whole_close(state);
}

/* Declares some more, from `first` on, in this turn of the loop. */
static void declare(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "e%u", i);
        whole.config.name = names[i];
        many[i] = whole_new();
        candidate_start(many[i]);
    }
}

static unsigned asking(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < MANY; i++)
        count += many[i] != NULL && many[i]->call != NULL;
    return count;
}

static void pass(int64_t ns)
{
    loop_advance(whole.env.loop, ns);
}

static int open_many(void **state)
{
    if (whole_open(state) < 0)
        return -1;
    whole_quiet();
    whole.config.election.call_timeout_ns = 1000 * S;
    whole_does("claim", "wait(1000)");
    return 0;
}

static void a_turn_begins_so_many_and_the_next_one_more(void **state)
{
    (void)state;
    declare(0, TURN + 2);
    assert_int_equal(asking(), TURN);
    assert_int_equal(many[TURN]->waits, CANDIDATE_WAITS_TO_START);
    assert_null(many[TURN]->call);
    pass(0);
    assert_int_equal(asking(), TURN + 2);
    assert_int_equal(many[TURN]->waits, 0);
    declare(TURN + 2, 1); /* in another turn */
    assert_int_equal(asking(), TURN + 3);
}

/* Those of other stores do not wait for it for ever. */
static void a_crowd_at_the_stores_is_waited_for_a_while(void **state)
{
    (void)state;
    declare(0, MANY);
    assert_int_equal(asking(), TURN);
    pass(0);
    assert_int_equal(asking(), CROWD);
    for (unsigned before = CROWD; before < MANY; before += TURN) {
        pass(50 * NS_PER_MS - 1);
        assert_int_equal(asking(), before);
        pass(1);
        assert_int_equal(asking(), before + TURN < MANY ? before + TURN : MANY);
    }
}

static void a_crowd_that_is_answered_slowly_does_not_grow(void **state)
{
    (void)state;
    /* One every 20 ms. */
    whole_does("claim",
               "asked = (asked or 0) + 1 wait(asked / 50) return 'denied', 3000, 'two', 6");
    declare(0, MANY);
    for (unsigned i = 0; i < 50; i++) {
        pass(20 * NS_PER_MS);
        assert_in_range(asking(), CROWD - 2, CROWD);
    }
    assert_in_range(many[CROWD + 40]->waits, 0, 0); /* those who wait have come up */
}

static void who_waits_begins_as_soon_as_others_have_their_answers(void **state)
{
    (void)state;
    whole_does("claim", "wait(0.012) return 'denied', 30, 'two', 6");
    declare(0, MANY);
    pass(11 * NS_PER_MS);
    assert_int_equal(asking(), CROWD);
    pass(5 * NS_PER_MS);
    assert_int_equal(asking(), CROWD); /* the next ones */
    pass(17 * NS_PER_MS);
    assert_int_equal(asking(), MANY - 2 * CROWD);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(many[i]->waits, 0);
    pass(15 * NS_PER_MS);
    assert_int_equal(asking(), 0);
}

static void who_is_stopped_in_line_claims_nothing(void **state)
{
    (void)state;
    declare(0, TURN + 3);
    candidate_stop(many[TURN + 1]);
    pass(0);
    assert_true(candidate_finished(many[TURN + 1]));
    assert_int_equal(asking(), TURN + 2);
    assert_int_equal(many[TURN + 1]->waits, 0);
}

static void a_leader_waits_behind_nobody(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "wait(1000)");
    declare(0, 1);
    pass(9 * S);
    assert_int_equal(many[0]->shown_phase, ELECTION_LEADING);
    whole_does("claim", "wait(1000)");
    declare(1, TURN);
    assert_int_equal(asking(), TURN);
    candidate_clock_set(many[0]);
    assert_int_equal(asking(), TURN + 1);
    assert_int_equal(many[0]->call_kind, CALL_REFRESH);
}

static void what_comes_in_line_is_not_forgotten(void **state)
{
    (void)state;
    lua_State *L = lua_vm_state(whole.env.lua);
    declare(0, TURN + 1);
    whole_does("claim", "return 'denied', 30, 'two', 6");
    whole_does("info", "wait(1000)");
    for (unsigned i = 0; i < 2; i++) {
        lua_pushboolean(L, true);
        assert_true(candidate_send(many[TURN], L));
    }
    assert_int_equal(many[TURN]->waits, CANDIDATE_WAITS_TO_START | CANDIDATE_WAITS_WITH_MESSAGE);
    assert_int_equal(many[TURN]->mailbox.untold, 2);
    assert_null(many[TURN]->call);
    pass(0);
    assert_int_equal(many[TURN]->mailbox.untold, 0);
    assert_int_equal(many[TURN]->call_kind, CALL_INFO);
    assert_int_equal(many[TURN]->mailbox.count, 1);
}

/* Who follows looks again when its timer says so, in its turn. */
static void a_follower_whose_time_has_come_stands_in_line_too(void **state)
{
    (void)state;
    whole_does("claim", "return 'denied', nil, 'two', 6, false, 3");
    declare(0, 1);
    pass(S);
    whole_does("claim", "wait(1000)");
    declare(1, TURN);
    many[0]->timer.fire(&many[0]->timer);
    assert_int_equal(many[0]->waits, CANDIDATE_WAITS_TO_LOOK);
    pass(0);
    assert_int_equal(many[0]->waits, 0);
    pass(4 * S);
    assert_int_equal(asking(), TURN + 1);
}

static void a_line_that_goes_leaves_nothing_to_the_loop(void **state)
{
    (void)state;
    declare(0, 1);
    assert_true(loop_next_ns(whole.env.loop) < loop_now(whole.env.loop) + 5 * NS_PER_MS);
    starts_free(whole.env.starts);
    whole.env.starts = starts_new(&whole.env);
    starts_asking(whole.env.starts, true); /* the one above */
    starts_free(NULL);
}

#define STARTS_TEST(name) cmocka_unit_test_setup_teardown(name, open_many, close_many)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STARTS_TEST(a_turn_begins_so_many_and_the_next_one_more),
        STARTS_TEST(a_crowd_at_the_stores_is_waited_for_a_while),
        STARTS_TEST(a_crowd_that_is_answered_slowly_does_not_grow),
        STARTS_TEST(who_waits_begins_as_soon_as_others_have_their_answers),
        STARTS_TEST(who_is_stopped_in_line_claims_nothing),
        STARTS_TEST(a_leader_waits_behind_nobody),
        STARTS_TEST(what_comes_in_line_is_not_forgotten),
        STARTS_TEST(a_follower_whose_time_has_come_stands_in_line_too),
        STARTS_TEST(a_line_that_goes_leaves_nothing_to_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

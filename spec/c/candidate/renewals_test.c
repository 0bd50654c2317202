/* What a renewal of a session gives to refreshes, and what it leaves to their oracle. */
#include "candidate/renewals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "loop/loop.h"

#define TTL_NS (30 * NS_PER_S)
#define DELAY_NS (10 * NS_PER_S)
#define NOW_NS (1000 * NS_PER_S)

static struct loop *loop;
static struct renewals renewals;
static unsigned begun, woken;
static bool begins;
static int64_t offset_ns;

/* How far a refresh is put off within its round; and how far the wall clock is from the other. */
static int64_t apart_ns, apart_most_ns;

uint64_t __wrap_random_below(struct random *random, uint64_t limit);
uint64_t __wrap_random_below(struct random *random, uint64_t limit)
{
    assert_ptr_equal(random, &renewals.random);
    apart_most_ns = (int64_t)limit - 1;
    return (uint64_t)apart_ns;
}

int64_t __wrap_clock_wall_offset_ns(void);
int64_t __wrap_clock_wall_offset_ns(void)
{
    return offset_ns;
}

static bool renew(struct renewals *asked)
{
    assert_ptr_equal(asked, &renewals);
    begun++;
    return begins;
}

static void wake(struct op *op)
{
    (void)op;
    woken++;
}

static int open_renewals(void **state)
{
    (void)state;
    const struct renewals_times times = {.ttl_ns = TTL_NS,
                                         .delay_ns = DELAY_NS,
                                         .fresh_ns = DELAY_NS / 4,
                                         .apart_ns = DELAY_NS / 10,
                                         .patience_ns = 40 * NS_PER_S,
                                         .clock_set_ns = 50 * NS_PER_MS};
    loop = loop_new(NULL);
    if (loop == NULL)
        return -1;
    loop_set_virtual(loop, true);
    loop_advance(loop, NOW_NS);
    begun = woken = 0;
    begins = true;
    offset_ns = 77 * NS_PER_S;
    apart_ns = 0;
    renewals_init(&renewals, loop, &times, renew);
    return 0;
}

static int close_renewals(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static struct refresher_term term(bool stands)
{
    return (struct refresher_term){.epoch = 7, .asked_ns = loop_now(loop), .stands = stands};
}

static bool grants(struct refresher_found *found)
{
    const struct refresher_term ours = term(true);
    *found = (struct refresher_found){.ttl_ns = renewals.refresher.ttl_ns};
    return renewals.refresher.grants(&renewals.refresher, &ours, found);
}

static struct op *ask(void)
{
    const struct refresher_term ours = term(true);
    struct op *op = renewals.refresher.ask(&renewals.refresher, &ours, NULL);
    if (op != NULL)
        op->wake = wake;
    return op;
}

static enum refresher_answer look(struct op *op, bool stands, struct refresher_found *found)
{
    const struct refresher_term ours = term(stands);
    return renewals.refresher.look(&renewals.refresher, op, &ours, found);
}

static void count_now(void)
{
    renewals_count(&renewals, loop_now(loop), offset_ns, loop_now(loop));
}

static void one_renewal_counts_for_all_from_its_sending(void **state)
{
    (void)state;
    struct refresher_found found;
    assert_false(grants(&found));
    count_now();
    loop_advance(loop, NS_PER_S);
    for (int i = 0; i < 3; i++) {
        assert_true(grants(&found));
        assert_true(found.ttl_ns == TTL_NS && found.past_ns == NS_PER_S);
        assert_true(found.delay_ns >= 8 * NS_PER_S && found.delay_ns <= 9 * NS_PER_S);
    }
    assert_int_equal(begun, 0);
}

static void an_old_renewal_counts_for_nobody(void **state)
{
    (void)state;
    struct refresher_found found;
    count_now();
    loop_advance(loop, DELAY_NS / 4);
    assert_true(grants(&found));
    loop_advance(loop, 1);
    assert_false(grants(&found));
}

static void nor_does_one_from_before_the_clock_was_set(void **state)
{
    (void)state;
    struct refresher_found found;
    for (int sign = -1; sign <= 1; sign += 2) {
        const int64_t most_ns = sign * 50 * NS_PER_MS;
        renewals_count(&renewals, loop_now(loop), offset_ns + most_ns, loop_now(loop));
        assert_true(grants(&found));
        renewals_count(&renewals, loop_now(loop), offset_ns + most_ns + sign, loop_now(loop));
        assert_false(grants(&found));
    }
}

/* A term that was asked for before the renewal was sent counts from its own call. */
static void one_that_was_sent_later_takes_nothing_away(void **state)
{
    (void)state;
    struct refresher_found found;
    const struct refresher_term ours = {
        .epoch = 7, .asked_ns = loop_now(loop) - NS_PER_S, .stands = true};
    count_now();
    assert_true(grants(&found));
    assert_true(found.past_ns == 0);
    assert_true(renewals.refresher.grants(&renewals.refresher, &ours, &found));
    assert_true(found.past_ns == 0);
}

static void a_term_that_does_not_stand_is_left_to_its_oracle(void **state)
{
    (void)state;
    struct refresher_found found;
    const struct refresher_term lost = term(false);
    count_now();
    assert_false(renewals.refresher.grants(&renewals.refresher, &lost, &found));
    assert_null(renewals.refresher.ask(&renewals.refresher, &lost, NULL));
    loop_advance(loop, DELAY_NS);
    struct op *op = ask();
    count_now();
    assert_int_equal(look(op, false, &found), REFRESHER_OTHER);
}

static void who_comes_while_a_renewal_is_under_way_waits_for_it(void **state)
{
    (void)state;
    struct refresher_found found;
    count_now();
    loop_advance(loop, 9 * NS_PER_S);
    struct op *one = ask(), *two = ask(), *three = ask();
    assert_int_equal(begun, 1);
    op_cancel(three);
    count_now();
    loop_advance(loop, 0);
    assert_int_equal(woken, 2);
    assert_int_equal(look(one, true, &found), REFRESHER_SAME);
    assert_int_equal(look(two, true, &found), REFRESHER_SAME);
}

static void a_renewal_that_is_not_answered_is_asked_for_again(void **state)
{
    (void)state;
    count_now();
    loop_advance(loop, 9 * NS_PER_S);
    struct op *one = ask();
    loop_advance(loop, 41 * NS_PER_S);
    struct op *two = ask();
    assert_int_equal(begun, 2);
    op_cancel(one);
    op_cancel(two);
}

static void one_that_fails_says_why(void **state)
{
    (void)state;
    struct refresher_found found = {.code = NULL};
    count_now();
    loop_advance(loop, 9 * NS_PER_S);
    struct op *one = ask(), *two = ask();
    renewals_fail(&renewals, "no route", true);
    assert_int_equal(look(one, true, &found), REFRESHER_UNKNOWN);
    assert_string_equal(found.err.message, "no route");
    assert_string_equal(found.code, "store");
    assert_int_equal(look(two, false, &found), REFRESHER_OTHER);
}

static void what_does_not_count_for_all_is_left_to_the_oracles(void **state)
{
    (void)state;
    struct refresher_found found;
    count_now();
    loop_advance(loop, 9 * NS_PER_S);
    struct op *op = ask();
    renewals_forget(&renewals);
    assert_int_equal(look(op, true, &found), REFRESHER_OTHER);
    assert_null(ask());
    count_now();
    assert_true(grants(&found));
}

static void one_that_does_not_begin_is_not_waited_for(void **state)
{
    (void)state;
    count_now();
    loop_advance(loop, 9 * NS_PER_S);
    begins = false;
    assert_null(ask());
    begins = true;
    struct op *op = ask();
    assert_non_null(op);
    op_cancel(op);
}

static void refreshes_of_a_round_come_together(void **state)
{
    (void)state;
    struct refresher_found found;
    const int64_t first_ns = loop_now(loop);
    loop_advance(loop, 4 * NS_PER_S);
    renewals_count(&renewals, loop_now(loop), offset_ns, first_ns);
    assert_true(grants(&found)); /* the next round begins 9 s after the first */
    assert_true(found.delay_ns >= 5 * NS_PER_S && found.delay_ns <= 6 * NS_PER_S);
    loop_advance(loop, 2 * NS_PER_S);
    assert_true(grants(&found));
    assert_true(found.delay_ns >= 3 * NS_PER_S && found.delay_ns <= 4 * NS_PER_S);
}

/* Rounds are 9 s long: a refresh is in the next one, or in the one after that where that begins
 * within the second by which refreshes are apart; never later than a delay after the renewal. */
static void the_next_refresh_is_in_a_round_and_not_too_late(void **state)
{
    static const struct {
        int64_t into_ns, apart_ns, renewed_ns, delay_ns; /* from the first round, from now */
    } cases[] = {
        {0, 0, 0, 9 * NS_PER_S},
        {0, NS_PER_S, 0, 10 * NS_PER_S},
        {4 * NS_PER_S, NS_PER_S, 4 * NS_PER_S, 6 * NS_PER_S},
        {8 * NS_PER_S, 0, 8 * NS_PER_S, NS_PER_S},
        {8 * NS_PER_S + 1, 0, 8 * NS_PER_S + 1, 10 * NS_PER_S - 1},
        {8 * NS_PER_S + 2, 1, 8 * NS_PER_S + 2, 10 * NS_PER_S - 1},
        {8 * NS_PER_S + 2, 2, 8 * NS_PER_S + 2, 10 * NS_PER_S},
        {8 * NS_PER_S + 2, NS_PER_S, 8 * NS_PER_S + 2, 10 * NS_PER_S},
        {2 * NS_PER_S, NS_PER_S, 0, 8 * NS_PER_S},
        {2 * NS_PER_S, NS_PER_S - 1, 0, 8 * NS_PER_S - 1},
        {10 * NS_PER_S, NS_PER_S, 8 * NS_PER_S, 8 * NS_PER_S},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct refresher_found found;
        const int64_t first_ns = loop_now(loop) - cases[i].into_ns;
        renewals_count(&renewals, first_ns + cases[i].renewed_ns, offset_ns, first_ns);
        apart_ns = cases[i].apart_ns;
        assert_true(grants(&found));
        assert_true(found.delay_ns == cases[i].delay_ns);
        assert_true(apart_most_ns == NS_PER_S);
    }
}

static void one_under_way_is_waited_for_as_long_as_it_may_take(void **state)
{
    (void)state;
    count_now();
    loop_advance(loop, 9 * NS_PER_S);
    struct op *one = ask();
    loop_advance(loop, 40 * NS_PER_S);
    struct op *two = ask();
    assert_int_equal(begun, 1);
    loop_advance(loop, 1);
    struct op *three = ask();
    assert_int_equal(begun, 2);
    op_cancel(one);
    op_cancel(two);
    op_cancel(three);
}

/* Answered or not, the next one is asked for at once. */
static void one_that_is_over_is_not_under_way(void **state)
{
    (void)state;
    struct refresher_found found = {.code = NULL};
    count_now();
    for (unsigned i = 0; i < 3; i++) {
        struct op *op = ask();
        assert_int_equal(begun, 2 * i + 1);
        renewals_fail(&renewals, "no route", false);
        loop_advance(loop, 0);
        assert_int_equal(look(op, true, &found), REFRESHER_SAME); /* the last one still counts */
        loop_advance(loop, 9 * NS_PER_S);
        op = ask();
        assert_int_equal(begun, 2 * i + 2);
        renewals_fail(&renewals, "no route", false);
        loop_advance(loop, 0);
        assert_int_equal(look(op, true, &found), REFRESHER_UNKNOWN);
        assert_null(found.code);
        count_now();
    }
    begins = false;
    assert_null(ask());
    assert_null(ask());
    assert_int_equal(begun, 8);
}

static void whom_a_renewal_woke_it_wakes_no_more(void **state)
{
    (void)state;
    struct refresher_found found;
    count_now();
    loop_advance(loop, 9 * NS_PER_S);
    struct op *op = ask();
    renewals_forget(&renewals);
    loop_advance(loop, 0);
    assert_int_equal(woken, 1);
    assert_int_equal(look(op, true, &found), REFRESHER_OTHER);
    renewals_forget(&renewals);
    loop_advance(loop, 0);
    assert_int_equal(woken, 1);
}

static bool grants_nothing(struct refresher *base, const struct refresher_term *ours,
                           struct refresher_found *found)
{
    (void)base;
    (void)ours;
    (void)found;
    return false;
}

static void another_refresher_is_none_of_them(void **state)
{
    (void)state;
    struct refresher another = {.grants = grants_nothing};
    assert_ptr_equal(renewals_of(&renewals.refresher), &renewals);
    assert_null(renewals_of(&another));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_renewals, close_renewals)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_renewal_counts_for_all_from_its_sending),
        TEST(an_old_renewal_counts_for_nobody),
        TEST(nor_does_one_from_before_the_clock_was_set),
        TEST(a_term_that_does_not_stand_is_left_to_its_oracle),
        TEST(who_comes_while_a_renewal_is_under_way_waits_for_it),
        TEST(a_renewal_that_is_not_answered_is_asked_for_again),
        TEST(one_that_fails_says_why),
        TEST(what_does_not_count_for_all_is_left_to_the_oracles),
        TEST(one_that_does_not_begin_is_not_waited_for),
        TEST(refreshes_of_a_round_come_together),
        TEST(the_next_refresh_is_in_a_round_and_not_too_late),
        TEST(one_that_was_sent_later_takes_nothing_away),
        TEST(one_under_way_is_waited_for_as_long_as_it_may_take),
        TEST(one_that_is_over_is_not_under_way),
        TEST(whom_a_renewal_woke_it_wakes_no_more),
        TEST(another_refresher_is_none_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The table of a runtime's candidates: who is found by a name, who is visited, and who has changed.
 */
#include "candidate/candidates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candidate/env.h"
#include "candidate/state.h"
#include "loop/loop.h"

#define MANY 300 /* more than are visited in two turns of the loop */

static struct candidates *candidates;
static struct candidate_env env = {.node = "here"};
static struct candidate some[MANY];
static char names[MANY][16];

/* Who was visited, in this order. */
static const struct candidate *seen[MANY];
static unsigned seen_count;

static int make(void **state)
{
    (void)state;
    candidates = candidates_new();
    memset(some, 0, sizeof(some));
    seen_count = 0;
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name %u", i);
        some[i].env = &env;
        some[i].name = names[i];
    }
    return candidates != NULL ? 0 : -1;
}

static int unmake(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        if (some[i].link.next != NULL)
            candidates_remove(candidates, &some[i]);
    assert_int_equal(candidates_count(candidates), 0);
    candidates_free(candidates);
    return 0;
}

static int add(unsigned number, const char *name, const char *node)
{
    struct crown_error err = {0};
    if (name != NULL)
        some[number].name = name;
    static char keys[sizeof(some) / sizeof(*some)][64];
    some[number].key = NULL;
    if (node != NULL) {
        some[number].key = keys[number];
        (void)snprintf(keys[number], sizeof(keys[number]), "%s\n%s", some[number].name, node);
    }
    return candidates_add(candidates, &some[number], &err);
}

static void add_some(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(add(i, NULL, NULL), 0);
}

static void see(struct candidate *one, void *context)
{
    assert_ptr_equal(context, &seen_count);
    assert_true(seen_count < MANY);
    seen[seen_count++] = one;
}

static void assert_seen(unsigned count, ...)
{
    va_list which;
    va_start(which, count);
    assert_int_equal(seen_count, count);
    for (unsigned i = 0; i < count; i++)
        assert_ptr_equal(seen[i], &some[va_arg(which, int)]);
    va_end(which);
    seen_count = 0;
}

/* --- by name */

static void each_is_found_by_its_name(void **state)
{
    (void)state;
    assert_null(candidates_find(candidates, "name 1"));
    add_some(3);
    assert_int_equal(candidates_count(candidates), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(candidates_find(candidates, names[i]), &some[i]);
        assert_null(candidates_next(&some[i]));
    }
    assert_null(candidates_find(candidates, "name 3"));
    candidates_remove(candidates, &some[1]);
    assert_int_equal(candidates_count(candidates), 2);
    assert_null(candidates_find(candidates, "name 1"));
    assert_ptr_equal(candidates_find(candidates, "name 2"), &some[2]);
    assert_int_equal(add(1, NULL, NULL), 0);
    assert_ptr_equal(candidates_find(candidates, "name 1"), &some[1]);
}

static void candidates_of_one_election_need_a_node_of_their_own(void **state)
{
    (void)state;
    struct crown_error err = {0};
    assert_int_equal(add(0, "a", NULL), 0);
    some[1].name = "a";
    assert_int_equal(candidates_add(candidates, &some[1], &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "'a'"));
    assert_int_equal(add(1, "a", "here"), -1);
    assert_int_equal(add(1, "a", "w1"), 0);
    assert_int_equal(add(2, "a", "w1"), -1);
    assert_int_equal(add(2, "a", "w2"), 0);
    assert_int_equal(add(3, "a", "w1"), -1);
    assert_int_equal(add(3, "a", "w2"), -1);
    assert_int_equal(candidates_count(candidates), 3);
    assert_int_equal(add(3, "b", "w1"), 0);
}

static unsigned candidates_of(const char *name, unsigned numbers[MANY])
{
    unsigned count = 0;
    for (struct candidate *one = candidates_find(candidates, name); one != NULL;
         one = candidates_next(one))
        numbers[count++] = (unsigned)(one - some);
    return count;
}

static void an_election_is_left_by_its_candidates_in_any_order(void **state)
{
    (void)state;
    static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const char *const nodes[] = {"w0", "w1", "w2"};
    for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        for (unsigned k = 0; k < 3; k++) {
            some[k].twin = NULL;
            assert_int_equal(add(k, "a", nodes[k]), 0);
        }
        for (unsigned left = 3; left > 0; left--) {
            unsigned numbers[MANY], sum = 0, wanted = 0;
            assert_int_equal(candidates_of("a", numbers), left);
            for (unsigned k = 0; k < left; k++) {
                sum += 1U << numbers[k];
                wanted += 1U << orders[i][3 - left + k];
            }
            assert_int_equal(sum, wanted);
            candidates_remove(candidates, &some[orders[i][3 - left]]);
        }
        assert_null(candidates_find(candidates, "a"));
    }
}

/* --- visits */

static void remove_seen(struct candidate *one, void *context)
{
    see(one, context);
    candidates_remove(candidates, one);
}

static void each_is_visited_also_where_it_goes_meanwhile(void **state)
{
    (void)state;
    candidates_each(candidates, see, &seen_count);
    assert_seen(0);
    add_some(3);
    candidates_each(candidates, see, &seen_count);
    assert_seen(3, 0, 1, 2);
    candidates_each(candidates, remove_seen, &seen_count);
    assert_seen(3, 0, 1, 2);
    assert_int_equal(candidates_count(candidates), 0);
}

static bool see_two(struct candidate *one, void *context)
{
    see(one, context);
    return seen_count < 2;
}

static void some_are_visited_while_the_visitor_wants_more(void **state)
{
    (void)state;
    add_some(3);
    candidates_while(candidates, see_two, &seen_count);
    assert_seen(2, 0, 1);
}

static void do_nothing(struct loop_job *job)
{
    (void)job;
}

/* All turns of the loop that are asked for: a clock that stands still takes none by itself. */
static void take_turns(struct loop *loop)
{
    struct loop_job job = {.run = do_nothing};
    loop_post(loop, &job);
    loop_advance(loop, 0);
}

static void many_are_visited_a_part_in_each_turn(void **state)
{
    (void)state;
    struct loop *loop = loop_new(NULL);
    assert_non_null(loop);
    loop_set_virtual(loop, true);
    add_some(MANY);
    assert_false(candidates_visiting(candidates));
    candidates_visit(candidates, loop, see, &seen_count);
    assert_int_equal(seen_count, 128);
    assert_true(candidates_visiting(candidates));
    candidates_remove(candidates, &some[128]); /* who would be next */
    candidates_remove(candidates, &some[200]);
    take_turns(loop);
    assert_int_equal(seen_count, MANY - 2);
    assert_ptr_equal(seen[128], &some[129]);
    assert_ptr_equal(seen[seen_count - 1], &some[MANY - 1]);
    assert_false(candidates_visiting(candidates));
    seen_count = 0;
    candidates_visit(candidates, loop, see, &seen_count);
    for (unsigned i = 128; i < MANY; i++)
        if (some[i].link.next != NULL)
            candidates_remove(candidates, &some[i]);
    assert_false(candidates_visiting(candidates));
    take_turns(loop);
    assert_int_equal(seen_count, 128);
    candidates_visit(candidates, loop, see, &seen_count); /* no more than are visited in a turn */
    assert_int_equal(seen_count, 2 * 128);
    assert_false(candidates_visiting(candidates));
    assert_true(loop_next_ns(loop) == TIME_NEVER);
    loop_free(loop);
}

static void a_table_that_goes_leaves_nothing_to_the_loop(void **state)
{
    (void)state;
    struct loop *loop = loop_new(NULL);
    assert_non_null(loop);
    loop_set_virtual(loop, true);
    add_some(MANY);
    candidates_visit(candidates, loop, see, &seen_count);
    assert_true(loop_next_ns(loop) != TIME_NEVER);
    for (unsigned i = 0; i < MANY; i++) {
        candidates_remove(candidates, &some[i]);
        assert_null(some[i].link.next); /* it may be freed now */
        assert_null(some[i].recent.next);
    }
    candidates_free(candidates);
    assert_true(loop_next_ns(loop) == TIME_NEVER);
    loop_free(loop);
    candidates_free(NULL);
    candidates = candidates_new();
    candidates_free(candidates);
    candidates = candidates_new();
    assert_non_null(candidates);
}

/* --- who leads, who has changed */

static void leaders_are_counted(void **state)
{
    (void)state;
    add_some(3);
    assert_int_equal(candidates_leading(candidates), 0);
    candidates_show(candidates, &some[0], ELECTION_LEADING);
    candidates_show(candidates, &some[1], ELECTION_LEADING);
    candidates_show(candidates, &some[1], ELECTION_LEADING);
    candidates_show(candidates, &some[2], ELECTION_FOLLOWING);
    assert_int_equal(candidates_leading(candidates), 2);
    assert_int_equal(some[0].shown_phase, ELECTION_LEADING);
    candidates_show(candidates, &some[1], ELECTION_STEPPING);
    assert_int_equal(candidates_leading(candidates), 1);
    candidates_remove(candidates, &some[0]); /* a leader */
    assert_int_equal(candidates_leading(candidates), 0);
}

static bool changed(uint64_t since, unsigned most)
{
    return candidates_changed(candidates, since, most, see, &seen_count);
}

static void who_has_changed_since_is_told_in_the_order_of_the_last_change(void **state)
{
    (void)state;
    assert_false(changed(0, MANY)); /* nobody has asked for a stamp, so nothing was noted */
    assert_int_equal(candidates_stamp(candidates), 0);
    assert_true(changed(0, MANY));
    assert_seen(0);
    add_some(4);
    const uint64_t since = candidates_stamp(candidates);
    assert_true(changed(0, MANY));
    assert_seen(4, 0, 1, 2, 3);
    assert_true(changed(since, MANY));
    assert_seen(0);
    candidates_touch(candidates, &some[2]);
    candidates_touch(candidates, &some[0]);
    candidates_touch(candidates, &some[2]);
    assert_int_equal(candidates_stamp(candidates), since + 3);
    assert_true(changed(since, MANY));
    assert_seen(2, 0, 2);
    assert_true(changed(since + 1, 2));
    assert_seen(2, 0, 2);
    assert_true(changed(since + 2, 1));
    assert_seen(1, 2);
    assert_true(changed(since - 1, MANY));
    assert_seen(3, 3, 0, 2);
}

/* Then all have to be looked at. */
static void too_many_or_a_removal_or_another_runtimes_stamp_is_not_told(void **state)
{
    (void)state;
    add_some(4);
    const uint64_t since = candidates_stamp(candidates);
    candidates_touch(candidates, &some[0]);
    candidates_touch(candidates, &some[1]);
    assert_false(changed(since, 1));
    assert_true(changed(since, 2));
    assert_seen(2, 0, 1);
    assert_false(changed(since + 3, MANY));
    assert_true(changed(since + 2, MANY));
    candidates_remove(candidates, &some[3]);
    assert_false(changed(since, MANY));
    assert_false(changed(since + 2, MANY));
    assert_true(changed(candidates_stamp(candidates), MANY));
    assert_seen(0);
}

#define TABLE_TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TABLE_TEST(each_is_found_by_its_name),
        TABLE_TEST(candidates_of_one_election_need_a_node_of_their_own),
        TABLE_TEST(an_election_is_left_by_its_candidates_in_any_order),
        TABLE_TEST(each_is_visited_also_where_it_goes_meanwhile),
        TABLE_TEST(some_are_visited_while_the_visitor_wants_more),
        TABLE_TEST(many_are_visited_a_part_in_each_turn),
        TABLE_TEST(a_table_that_goes_leaves_nothing_to_the_loop),
        TABLE_TEST(leaders_are_counted),
        TABLE_TEST(who_has_changed_since_is_told_in_the_order_of_the_last_change),
        TABLE_TEST(too_many_or_a_removal_or_another_runtimes_stamp_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Deadlines, descriptors and clocks of the loop. */
#include "seen.h"

#include <unistd.h>

#include "base/random.h"

#define CROWD 600u

static void ignore_deadline(struct loop_deadline *deadline)
{
    assert_false(loop_at_armed(deadline));
}

static void deadlines_fire_in_order_and_never_early(void **state)
{
    (void)state;
    static struct loop_deadline deadlines[SEEN_MOST];
    struct random random;
    int64_t start_ns = loop_now(seen.loop);
    random_seed(&random, 3);
    seen.wanted = SEEN_MOST;
    for (unsigned i = 0; i < SEEN_MOST; i++) {
        deadlines[i] = (struct loop_deadline){.fire = seen_deadline};
        loop_at(seen.loop, &deadlines[i],
                start_ns + (int64_t)random_below(&random, 50) * NS_PER_MS);
    }
    /* Moved, also backwards: only the last word counts. */
    for (unsigned i = 0; i < SEEN_MOST; i += 3)
        loop_at(seen.loop, &deadlines[i],
                start_ns + (int64_t)random_below(&random, 50) * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(seen.count, SEEN_MOST);
    for (unsigned i = 1; i < SEEN_MOST; i++)
        assert_true(seen.at_ns[i] >= seen.at_ns[i - 1]);
}

static void ignore_job(struct loop_job *job)
{
    assert_false(job->queued);
}

static void what_is_next_is_known(void **state)
{
    (void)state;
    struct loop_deadline deadline = {.fire = ignore_deadline};
    struct loop_job job = {.run = ignore_job};
    int64_t at_ns = loop_now(seen.loop) + NS_PER_S;
    assert_int_equal(loop_next_ns(seen.loop), TIME_NEVER);
    loop_at(seen.loop, &deadline, at_ns);
    assert_int_equal(loop_next_ns(seen.loop), at_ns);
    loop_post(seen.loop, &job);
    assert_true(loop_next_ns(seen.loop) < at_ns);
    loop_unpost(seen.loop, &job);
    assert_int_equal(loop_next_ns(seen.loop), at_ns);
    loop_defer(seen.loop, &job);
    assert_true(loop_next_ns(seen.loop) < at_ns);
    loop_unpost(seen.loop, &job);
    loop_at_cancel(seen.loop, &deadline);
}

static void a_cancelled_deadline_does_not_fire(void **state)
{
    (void)state;
    struct loop_deadline cancelled = {.fire = seen_deadline};
    struct loop_deadline disarmed = {.fire = seen_deadline};
    struct loop_deadline last = {.fire = seen_deadline};
    int64_t now = loop_now(seen.loop);
    loop_at(seen.loop, &cancelled, now + NS_PER_MS);
    loop_at(seen.loop, &disarmed, now + NS_PER_MS);
    loop_at(seen.loop, &last, now + 3 * NS_PER_MS);
    loop_at_cancel(seen.loop, &cancelled);
    loop_at_cancel(seen.loop, &cancelled);
    loop_at(seen.loop, &disarmed, TIME_NEVER);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
    assert_true(seen.at_ns[0] == last.node.key);
}

static void a_watch_says_when_a_descriptor_is_readable(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = seen_ready};
    assert_int_equal(pipe(ends), 0);
    loop_watch(seen.loop, &watch, ends[0], LOOP_READ);
    assert_int_equal(write(ends[1], "x", 1), 1);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
    assert_true(seen.at_ns[0] == 'x');
    assert_null(watch.impl);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static void a_watch_survives_a_descriptor_reopened_under_its_number(void **state)
{
    (void)state;
    int first[2];
    int second[2];
    struct loop_watch watch = {.ready = seen_ready};
    assert_int_equal(pipe(first), 0);
    loop_watch(seen.loop, &watch, first[0], LOOP_READ);
    struct loop_deadline deadline = {.fire = seen_deadline};
    loop_at(seen.loop, &deadline, loop_now(seen.loop));
    assert_int_equal(pipe(second), 0);
    assert_int_equal(dup2(second[0], first[0]), first[0]);
    loop_watch(seen.loop, &watch, first[0], LOOP_READ);
    assert_int_equal(write(second[1], "y", 1), 1);
    seen.wanted = 2;
    loop_run(seen.loop);
    assert_int_equal(seen.count, 2);
    assert_true(seen.at_ns[1] == 'y');
    assert_int_equal(close(first[0]) | close(first[1]) | close(second[0]) | close(second[1]), 0);
}

static void a_deadline_and_a_descriptor_are_progress(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = seen_ready};
    struct loop_deadline deadline = {.fire = seen_deadline};
    seen.progress = 0;
    loop_set_virtual(seen.loop, true); /* or the loop's own timer would count too */
    seen.wanted = 0;
    loop_on_progress(seen.loop, seen_progress, &seen);
    loop_at(seen.loop, &deadline, loop_now(seen.loop));
    loop_advance(seen.loop, 1);
    assert_int_equal(seen.progress, 1);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    loop_watch(seen.loop, &watch, ends[0], LOOP_READ);
    seen.wanted = 2;
    loop_run(seen.loop);
    assert_int_equal(seen.progress, 2);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static void the_virtual_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct loop_deadline late = {.fire = seen_deadline};
    struct loop_deadline early = {.fire = seen_deadline};
    loop_set_virtual(seen.loop, true);
    int64_t start_ns = loop_now(seen.loop);
    seen.wanted = 0;
    loop_at(seen.loop, &late, start_ns + 3600 * NS_PER_S);
    loop_at(seen.loop, &early, start_ns + 60 * NS_PER_S);
    assert_true(loop_now(seen.loop) == start_ns);
    loop_advance(seen.loop, 60 * NS_PER_S - 1);
    assert_int_equal(seen.count, 0);
    loop_advance(seen.loop, 1);
    assert_int_equal(seen.count, 1);
    loop_advance(seen.loop, 2 * 3600 * NS_PER_S);
    assert_int_equal(seen.count, 2);
    assert_true(seen.at_ns[1] == late.node.key);
    assert_true(loop_now(seen.loop) == start_ns + 7260 * NS_PER_S);
}

static void again(struct loop_deadline *deadline)
{
    seen_note(loop_now(seen.loop));
    loop_at(seen.loop, deadline, deadline->node.key + NS_PER_S);
}

static void the_virtual_clock_stops_at_each_deadline_on_its_way(void **state)
{
    (void)state;
    struct loop_deadline beat = {.fire = again};
    loop_set_virtual(seen.loop, true);
    int64_t start_ns = loop_now(seen.loop);
    seen.wanted = 0;
    loop_at(seen.loop, &beat, start_ns + NS_PER_S);
    loop_advance(seen.loop, 10 * NS_PER_S);
    assert_int_equal(seen.count, 10);
    for (unsigned i = 0; i < 10; i++)
        assert_true(seen.at_ns[i] == start_ns + (int64_t)(i + 1) * NS_PER_S);
    loop_at_cancel(seen.loop, &beat);
}

static void time_does_not_go_back_when_a_virtual_clock_is_let_go(void **state)
{
    (void)state;
    struct loop_deadline deadline = {.fire = seen_deadline};
    loop_set_virtual(seen.loop, true);
    loop_advance(seen.loop, 3600 * NS_PER_S);
    int64_t before_ns = loop_now(seen.loop);
    loop_set_virtual(seen.loop, false);
    assert_true(loop_now(seen.loop) >= before_ns);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
}

static void arm_in_the_past(struct loop_job *job)
{
    static struct loop_deadline deadline = {.fire = seen_deadline};
    (void)job;
    loop_at(seen.loop, &deadline, 0);
}

/* The deadlines that are due have been looked for by then, and the wait comes next. */
static void a_deadline_that_a_job_sets_in_the_past_fires(void **state)
{
    (void)state;
    struct loop_job job = {.run = arm_in_the_past};
    loop_post(seen.loop, &job);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
}

/* @return how often the loop woke until `count` deadlines of one instant had fired. */
static unsigned turns_of_a_wait(unsigned count, int64_t at_ns)
{
    static struct loop_deadline deadlines[CROWD];
    unsigned turns = 0;
    loop_on_turn(seen.loop, seen_turn, &turns);
    for (unsigned i = 0; i < count; i++) {
        deadlines[i] = (struct loop_deadline){.fire = i == 0 ? seen_deadline : ignore_deadline};
        loop_at(seen.loop, &deadlines[i], at_ns);
    }
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
    return turns;
}

static void a_loop_sleeps_until_its_deadline(void **state)
{
    (void)state;
    assert_in_range(turns_of_a_wait(1, loop_now(seen.loop) + 50 * NS_PER_MS), 1, 20);
}

/* Those of a crowd come together, a little late: never early, which the loop would spend spinning.
 */
static void a_loop_sleeps_until_the_deadlines_of_a_crowd(void **state)
{
    (void)state;
    int64_t grid_ns = (loop_now(seen.loop) / (5 * NS_PER_MS) + 10) * (5 * NS_PER_MS);
    assert_in_range(turns_of_a_wait(CROWD, grid_ns + 4900 * NS_PER_US), 1, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(deadlines_fire_in_order_and_never_early),
        LOOP_TEST(what_is_next_is_known),
        LOOP_TEST(a_cancelled_deadline_does_not_fire),
        LOOP_TEST(a_watch_says_when_a_descriptor_is_readable),
        LOOP_TEST(a_watch_survives_a_descriptor_reopened_under_its_number),
        LOOP_TEST(a_deadline_and_a_descriptor_are_progress),
        LOOP_TEST(the_virtual_clock_moves_only_when_told),
        LOOP_TEST(the_virtual_clock_stops_at_each_deadline_on_its_way),
        LOOP_TEST(time_does_not_go_back_when_a_virtual_clock_is_let_go),
        LOOP_TEST(a_deadline_that_a_job_sets_in_the_past_fires),
        LOOP_TEST(a_loop_sleeps_until_its_deadline),
        LOOP_TEST(a_loop_sleeps_until_the_deadlines_of_a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

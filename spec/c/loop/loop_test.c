#include "loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"

#define MOST 200u
#define CROWD 600u
#define PATIENCE_S 60 /* far more than all of this takes */

/* What happened, in order. */
static struct {
    struct loop *loop;
    int64_t at_ns[MOST];
    unsigned count;
    unsigned wanted; /* stops the loop when so many have happened */
} seen;

static int open_loop(void **state)
{
    (void)state;
    struct crown_error err;
    (void)alarm(PATIENCE_S); /* a loop that does not end is a failure */
    seen.loop = loop_new(&err);
    seen.count = 0;
    seen.wanted = 1;
    return seen.loop == NULL ? -1 : 0;
}

static int close_loop(void **state)
{
    (void)state;
    loop_free(seen.loop);
    return 0;
}

static void note(int64_t at_ns)
{
    assert_true(seen.count < MOST);
    seen.at_ns[seen.count++] = at_ns;
    if (seen.count == seen.wanted)
        loop_stop(seen.loop);
}

static void note_deadline(struct loop_deadline *deadline)
{
    assert_false(loop_at_armed(deadline));
    assert_true(loop_now(seen.loop) >= deadline->node.key);
    note(deadline->node.key);
}

static void ignore_deadline(struct loop_deadline *deadline)
{
    assert_false(loop_at_armed(deadline));
}

struct step {
    struct loop_job job;
    int64_t number;
    struct step *next; /* posted by this one */
};

static void note_step(struct loop_job *job)
{
    struct step *step = (struct step *)((char *)job - offsetof(struct step, job));
    note(step->number);
    if (step->next != NULL)
        loop_post(seen.loop, &step->next->job);
}

static void deadlines_fire_in_order_and_never_early(void **state)
{
    (void)state;
    static struct loop_deadline deadlines[MOST];
    struct random random;
    int64_t start_ns = loop_now(seen.loop);
    random_seed(&random, 3);
    seen.wanted = MOST;
    for (unsigned i = 0; i < MOST; i++) {
        deadlines[i] = (struct loop_deadline){.fire = note_deadline};
        loop_at(seen.loop, &deadlines[i],
                start_ns + (int64_t)random_below(&random, 50) * NS_PER_MS);
    }
    /* Moved, also backwards: only the last word counts. */
    for (unsigned i = 0; i < MOST; i += 3)
        loop_at(seen.loop, &deadlines[i],
                start_ns + (int64_t)random_below(&random, 50) * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(seen.count, MOST);
    for (unsigned i = 1; i < MOST; i++)
        assert_true(seen.at_ns[i] >= seen.at_ns[i - 1]);
}

static void a_cancelled_deadline_does_not_fire(void **state)
{
    (void)state;
    struct loop_deadline cancelled = {.fire = note_deadline};
    struct loop_deadline disarmed = {.fire = note_deadline};
    struct loop_deadline last = {.fire = note_deadline};
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

static void jobs_run_in_the_order_of_posting_and_once(void **state)
{
    (void)state;
    struct step third = {.job = {.run = note_step}, .number = 3};
    struct step first = {.job = {.run = note_step}, .number = 1, .next = &third};
    struct step second = {.job = {.run = note_step}, .number = 2};
    struct step never = {.job = {.run = note_step}, .number = 9};
    seen.wanted = 3;
    loop_post(seen.loop, &never.job);
    loop_post(seen.loop, &first.job);
    loop_post(seen.loop, &second.job);
    loop_post(seen.loop, &first.job); /* is queued already */
    loop_unpost(seen.loop, &never.job);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(seen.at_ns[i] == (int64_t)i + 1);
}

static unsigned ran; /* jobs, since a test began */

static void note_forever(struct loop_job *job)
{
    ran++;
    loop_post(seen.loop, job);
}

static void jobs_that_post_each_other_for_ever_leave_deadlines_their_turn(void **state)
{
    (void)state;
    struct loop_job job = {.run = note_forever};
    struct loop_deadline deadline = {.fire = note_deadline};
    loop_post(seen.loop, &job);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + 2 * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
}

static void note_ready(struct loop_watch *watch, unsigned events)
{
    char byte;
    assert_int_equal(events, LOOP_READ);
    assert_int_equal(read(watch->fd, &byte, 1), 1);
    loop_unwatch(watch); /* from inside its own callback */
    note(byte);
}

static void a_watch_says_when_a_descriptor_is_readable(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = note_ready};
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
    struct loop_watch watch = {.ready = note_ready};
    assert_int_equal(pipe(first), 0);
    loop_watch(seen.loop, &watch, first[0], LOOP_READ);
    struct loop_deadline deadline = {.fire = note_deadline};
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

static void count_turn(void *context)
{
    unsigned *turns = context;
    (*turns)++;
}

static void the_turn_is_told_only_when_the_run_queue_is_empty(void **state)
{
    (void)state;
    unsigned turns = 0;
    struct loop_job job = {.run = note_forever};
    struct loop_deadline deadline = {.fire = note_deadline};
    loop_on_turn(seen.loop, count_turn, &turns);
    loop_post(seen.loop, &job);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + 2 * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(turns, 0);
}

static void an_idle_loop_tells_its_turn(void **state)
{
    (void)state;
    unsigned turns = 0;
    struct loop_deadline deadline = {.fire = note_deadline};
    loop_on_turn(seen.loop, count_turn, &turns);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + NS_PER_MS);
    loop_run(seen.loop);
    assert_true(turns >= 1);
}

static unsigned progress;

static void count_progress(void *context)
{
    assert_ptr_equal(context, &progress);
    progress++;
}

/* The run queue is never empty, the turn never over: the heartbeat relies on it. */
static void each_job_is_progress_however_many_there_are(void **state)
{
    (void)state;
    unsigned turns = 0;
    struct loop_job job = {.run = note_forever};
    struct loop_deadline deadline = {.fire = note_deadline};
    progress = ran = 0;
    loop_on_turn(seen.loop, count_turn, &turns);
    loop_on_progress(seen.loop, count_progress, &progress);
    loop_post(seen.loop, &job);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + 2 * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(turns, 0);
    assert_true(progress > ran);
}

static void note_slowly(struct loop_job *job)
{
    (void)usleep(NS_PER_MS / 1000);
    ran++;
    loop_post(seen.loop, job);
}

/* Such as the word to stop, while thousands of claims wait for the disk one after the other. */
static void slow_jobs_leave_descriptors_their_turn(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = note_ready};
    struct loop_job job = {.run = note_slowly};
    ran = 0;
    assert_int_equal(pipe(ends), 0);
    loop_watch(seen.loop, &watch, ends[0], LOOP_READ);
    assert_int_equal(write(ends[1], "x", 1), 1);
    loop_post(seen.loop, &job);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
    assert_true(ran < 1000);
    loop_unpost(seen.loop, &job);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static void a_deadline_and_a_descriptor_are_progress(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = note_ready};
    struct loop_deadline deadline = {.fire = note_deadline};
    progress = 0;
    loop_set_virtual(seen.loop, true); /* or the loop's own timer would count too */
    seen.wanted = 0;
    loop_on_progress(seen.loop, count_progress, &progress);
    loop_at(seen.loop, &deadline, loop_now(seen.loop));
    loop_advance(seen.loop, 1);
    assert_int_equal(progress, 1);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    loop_watch(seen.loop, &watch, ends[0], LOOP_READ);
    seen.wanted = 2;
    loop_run(seen.loop);
    assert_int_equal(progress, 2);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static void the_virtual_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct loop_deadline late = {.fire = note_deadline};
    struct loop_deadline early = {.fire = note_deadline};
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
    note(loop_now(seen.loop));
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
    struct loop_deadline deadline = {.fire = note_deadline};
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
    static struct loop_deadline deadline = {.fire = note_deadline};
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
    loop_on_turn(seen.loop, count_turn, &turns);
    for (unsigned i = 0; i < count; i++) {
        deadlines[i] = (struct loop_deadline){.fire = i == 0 ? note_deadline : ignore_deadline};
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

static struct step gave_up = {.job = {.run = note_step}, .number = 1};

static void give_up_the_turn(struct loop_job *job)
{
    (void)job;
    loop_defer(seen.loop, &gave_up.job);
}

static void what_gives_up_its_turn_comes_after_what_is_ready(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = note_ready};
    struct loop_job job = {.run = give_up_the_turn};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    loop_watch(seen.loop, &watch, ends[0], LOOP_READ);
    loop_post(seen.loop, &job);
    seen.wanted = 2;
    loop_run(seen.loop);
    assert_true(seen.at_ns[0] == 'x');
    assert_true(seen.at_ns[1] == 1);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static struct step woken = {.job = {.run = note_step}, .number = 2};

static void note_and_wake(struct loop_watch *watch, unsigned events)
{
    note_ready(watch, events);
    loop_post(seen.loop, &woken.job);
}

static void what_gives_up_its_turn_comes_after_the_jobs_of_what_is_ready(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = note_and_wake};
    struct loop_job job = {.run = give_up_the_turn};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    loop_watch(seen.loop, &watch, ends[0], LOOP_READ);
    loop_post(seen.loop, &job);
    seen.wanted = 3;
    loop_run(seen.loop);
    assert_true(seen.at_ns[0] == 'x');
    assert_true(seen.at_ns[1] == 2);
    assert_true(seen.at_ns[2] == 1);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static void a_stopped_loop_runs_no_more(void **state)
{
    (void)state;
    struct step step = {.job = {.run = note_step}, .number = 1};
    loop_stop(seen.loop);
    loop_post(seen.loop, &step.job);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 0);
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, open_loop, close_loop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(deadlines_fire_in_order_and_never_early),
        LOOP_TEST(a_cancelled_deadline_does_not_fire),
        LOOP_TEST(jobs_run_in_the_order_of_posting_and_once),
        LOOP_TEST(jobs_that_post_each_other_for_ever_leave_deadlines_their_turn),
        LOOP_TEST(a_watch_says_when_a_descriptor_is_readable),
        LOOP_TEST(a_watch_survives_a_descriptor_reopened_under_its_number),
        LOOP_TEST(the_turn_is_told_only_when_the_run_queue_is_empty),
        LOOP_TEST(an_idle_loop_tells_its_turn),
        LOOP_TEST(each_job_is_progress_however_many_there_are),
        LOOP_TEST(slow_jobs_leave_descriptors_their_turn),
        LOOP_TEST(a_deadline_and_a_descriptor_are_progress),
        LOOP_TEST(the_virtual_clock_moves_only_when_told),
        LOOP_TEST(the_virtual_clock_stops_at_each_deadline_on_its_way),
        LOOP_TEST(time_does_not_go_back_when_a_virtual_clock_is_let_go),
        LOOP_TEST(a_deadline_that_a_job_sets_in_the_past_fires),
        LOOP_TEST(a_loop_sleeps_until_its_deadline),
        LOOP_TEST(a_loop_sleeps_until_the_deadlines_of_a_crowd),
        LOOP_TEST(what_gives_up_its_turn_comes_after_what_is_ready),
        LOOP_TEST(what_gives_up_its_turn_comes_after_the_jobs_of_what_is_ready),
        LOOP_TEST(a_stopped_loop_runs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

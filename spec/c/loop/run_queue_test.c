/* Whose turn it is: jobs, descriptors, deadlines, and tasks that compute. */
#include "seen.h"

#include <unistd.h>

#include "base/container.h"

static void jobs_run_in_the_order_of_posting_and_once(void **state)
{
    (void)state;
    struct step third = {.job = {.run = seen_step}, .number = 3};
    struct step first = {.job = {.run = seen_step}, .number = 1, .next = &third};
    struct step second = {.job = {.run = seen_step}, .number = 2};
    struct step never = {.job = {.run = seen_step}, .number = 9};
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
    struct loop_deadline deadline = {.fire = seen_deadline};
    loop_post(seen.loop, &job);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + 2 * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
}

static void the_turn_is_told_only_when_the_run_queue_is_empty(void **state)
{
    (void)state;
    unsigned turns = 0;
    struct loop_job job = {.run = note_forever};
    struct loop_deadline deadline = {.fire = seen_deadline};
    loop_on_turn(seen.loop, seen_turn, &turns);
    loop_post(seen.loop, &job);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + 2 * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(turns, 0);
}

static void an_idle_loop_tells_its_turn(void **state)
{
    (void)state;
    unsigned turns = 0;
    struct loop_deadline deadline = {.fire = seen_deadline};
    loop_on_turn(seen.loop, seen_turn, &turns);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + NS_PER_MS);
    loop_run(seen.loop);
    assert_true(turns >= 1);
}

/* The run queue is never empty, the turn never over: the heartbeat relies on it. */
static void each_job_is_progress_however_many_there_are(void **state)
{
    (void)state;
    unsigned turns = 0;
    struct loop_job job = {.run = note_forever};
    struct loop_deadline deadline = {.fire = seen_deadline};
    seen.progress = ran = 0;
    loop_on_turn(seen.loop, seen_turn, &turns);
    loop_on_progress(seen.loop, seen_progress, &seen);
    loop_post(seen.loop, &job);
    loop_at(seen.loop, &deadline, loop_now(seen.loop) + 2 * NS_PER_MS);
    loop_run(seen.loop);
    assert_int_equal(turns, 0);
    assert_true(seen.progress > ran);
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
    struct loop_watch watch = {.ready = seen_ready};
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

static struct step gave_up = {.job = {.run = seen_step}, .number = 1};

static void give_up_the_turn(struct loop_job *job)
{
    (void)job;
    loop_defer(seen.loop, &gave_up.job);
}

static void what_gives_up_its_turn_comes_after_what_is_ready(void **state)
{
    (void)state;
    int ends[2];
    struct loop_watch watch = {.ready = seen_ready};
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

static struct step woken = {.job = {.run = seen_step}, .number = 2};

static void note_and_wake(struct loop_watch *watch, unsigned events)
{
    seen_ready(watch, events);
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

static void give_up_the_turn_once(void *context)
{
    bool *given_up = context;
    if (!*given_up)
        loop_defer(seen.loop, &gave_up.job);
    *given_up = true;
}

static void what_gives_up_its_turn_when_that_ends_does_not_wait_for_another_event(void **state)
{
    (void)state;
    bool given_up = false;
    struct loop_deadline unreached = {.fire = seen_deadline};
    loop_on_turn(seen.loop, give_up_the_turn_once, &given_up);
    loop_at(seen.loop, &unreached, loop_now(seen.loop) + 3600 * NS_PER_S);
    loop_run(seen.loop);
    assert_true(seen.at_ns[0] == 1);
    loop_at_cancel(seen.loop, &unreached);
}

static void a_stopped_loop_runs_no_more(void **state)
{
    (void)state;
    struct step step = {.job = {.run = seen_step}, .number = 1};
    loop_stop(seen.loop);
    loop_post(seen.loop, &step.job);
    loop_run(seen.loop);
    assert_int_equal(seen.count, 0);
}

/* --- tasks that compute, and what must be on time beside them */

#define SLICE_NS (20 * NS_PER_MS)
#define HOPS 5u

struct hog {
    struct loop_job job;
    void (*then)(void);
};

static unsigned slices; /* of all hogs, since a test began */

static void compute(struct loop_job *job)
{
    const struct hog *hog = container_of(job, struct hog, job);
    const int64_t until_ns = loop_now(seen.loop) + SLICE_NS;
    while (loop_now(seen.loop) < until_ns)
        ;
    slices++;
    loop_defer(seen.loop, job);
    if (hog->then != NULL)
        hog->then();
}

/* Something that takes several turns, as the refresh of a lease does: a byte that goes round. */
static struct {
    int ends[2];
    unsigned hops;
    struct loop_watch watch;
    struct loop_job job;
} round_trip;

static void hop(struct loop_job *job)
{
    (void)job;
    if (round_trip.hops < HOPS)
        assert_int_equal(write(round_trip.ends[1], "x", 1), 1);
    else
        loop_stop(seen.loop);
}

static void arrived(struct loop_watch *watch, unsigned events)
{
    char byte;
    (void)events;
    assert_int_equal(read(watch->fd, &byte, 1), 1);
    round_trip.hops++;
    loop_post(seen.loop, &round_trip.job);
}

static void begin_round_trip(void)
{
    if (round_trip.watch.impl != NULL)
        return;
    round_trip.job.run = hop;
    round_trip.watch.ready = arrived;
    loop_watch(seen.loop, &round_trip.watch, round_trip.ends[0], LOOP_READ);
    loop_urgent_begin(seen.loop);
    hop(NULL);
}

static void what_computes_rests_while_something_is_urgent(void **state)
{
    (void)state;
    struct hog hog = {.job.run = compute, .then = begin_round_trip};
    slices = round_trip.hops = 0;
    assert_int_equal(pipe(round_trip.ends), 0);
    loop_post(seen.loop, &hog.job);
    loop_run(seen.loop);
    loop_unwatch(&round_trip.watch);
    loop_urgent_end(seen.loop);
    assert_int_equal(round_trip.hops, HOPS);
    assert_in_range(slices, 1, 2); /* a slice for each hop, if it did not rest */
    assert_int_equal(close(round_trip.ends[0]) | close(round_trip.ends[1]), 0);
}

static void stop_after_three(void)
{
    if (slices == 3)
        loop_stop(seen.loop);
}

static void what_computes_goes_on_however_long_something_is_urgent(void **state)
{
    (void)state;
    struct hog hog = {.job.run = compute, .then = stop_after_three};
    slices = 0;
    loop_urgent_begin(seen.loop);
    loop_post(seen.loop, &hog.job);
    loop_run(seen.loop);
    loop_urgent_end(seen.loop);
    assert_int_equal(slices, 3);
}

static void note_slices(struct loop_job *job)
{
    (void)job;
    seen_note(slices);
}

static struct loop_job counted = {.run = note_slices};

static void wake_counted(struct loop_watch *watch, unsigned events)
{
    (void)events;
    loop_unwatch(watch);
    loop_post(seen.loop, &counted);
}

/* Tasks that have just been started are no more patient than others at first. */
static void what_waits_behind_a_slice_comes_after_what_is_ready(void **state)
{
    (void)state;
    int ends[2];
    struct hog hogs[HOPS];
    struct loop_watch watch = {.ready = wake_counted};
    slices = 0;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    loop_watch(seen.loop, &watch, ends[0], LOOP_READ);
    for (unsigned i = 0; i < HOPS; i++) {
        hogs[i] = (struct hog){.job.run = compute};
        loop_post(seen.loop, &hogs[i].job);
    }
    loop_run(seen.loop);
    assert_int_equal(seen.at_ns[0], 1);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

/* Takes a slice, and is posted anew: another task that has just been started. */
static void compute_anew(struct loop_job *job)
{
    const int64_t until_ns = loop_now(seen.loop) + SLICE_NS;
    while (loop_now(seen.loop) < until_ns)
        ;
    loop_post(seen.loop, job);
}

static void new_ones_do_not_keep_the_patient_waiting_for_ever(void **state)
{
    (void)state;
    struct loop_job fresh = {.run = compute_anew};
    struct hog hog = {.job.run = compute, .then = stop_after_three};
    slices = 0;
    loop_post(seen.loop, &hog.job);
    loop_post(seen.loop, &fresh);
    loop_run(seen.loop);
    assert_int_equal(slices, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(jobs_run_in_the_order_of_posting_and_once),
        LOOP_TEST(jobs_that_post_each_other_for_ever_leave_deadlines_their_turn),
        LOOP_TEST(the_turn_is_told_only_when_the_run_queue_is_empty),
        LOOP_TEST(an_idle_loop_tells_its_turn),
        LOOP_TEST(each_job_is_progress_however_many_there_are),
        LOOP_TEST(slow_jobs_leave_descriptors_their_turn),
        LOOP_TEST(what_gives_up_its_turn_comes_after_what_is_ready),
        LOOP_TEST(what_gives_up_its_turn_comes_after_the_jobs_of_what_is_ready),
        LOOP_TEST(what_gives_up_its_turn_when_that_ends_does_not_wait_for_another_event),
        LOOP_TEST(a_stopped_loop_runs_no_more),
        LOOP_TEST(what_computes_rests_while_something_is_urgent),
        LOOP_TEST(what_computes_goes_on_however_long_something_is_urgent),
        LOOP_TEST(what_waits_behind_a_slice_comes_after_what_is_ready),
        LOOP_TEST(new_ones_do_not_keep_the_patient_waiting_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

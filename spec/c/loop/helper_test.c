#include "loop/helper.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct work {
    bool until_given_up;
    int ran;
};

static struct loop *loop;
static int done_count;
static atomic_int begun, dropped;

static void work_run(void *work, int given_up)
{
    struct work *own = work;
    struct pollfd wait = {.fd = given_up, .events = POLLIN};
    if (own->until_given_up)
        assert_int_equal(1, poll(&wait, 1, 20000));
    own->ran++;
}

static void work_done(void *context, void *work)
{
    const struct work *own = work;
    assert_ptr_equal(loop, context);
    assert_int_equal(1, own->ran);
    done_count++;
    free(work);
    loop_stop(loop);
}

static void work_drop(void *work)
{
    free(work);
    (void)atomic_fetch_add(&dropped, 1);
}

static const struct helper_kind kind = {"spec", work_run, work_done, work_drop, false};

static int open_loop(void **state)
{
    (void)state;
    struct crown_error err;
    loop = loop_new(&err);
    done_count = 0;
    atomic_store(&dropped, 0);
    return loop == NULL ? -1 : 0;
}

static int close_loop(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static struct helper *start(bool until_given_up, struct crown_error *err)
{
    struct work *work = calloc(1, sizeof(*work));
    assert_non_null(work);
    work->until_given_up = until_given_up;
    struct helper *helper = helper_start(loop, &kind, "it", work, loop, err);
    if (helper == NULL)
        free(work);
    return helper;
}

static void await(atomic_int *counter, int count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && atomic_load(counter) < count; i++)
        (void)nanosleep(&pause, NULL);
    assert_int_equal(count, atomic_load(counter));
}

static void await_dropped(int count)
{
    await(&dropped, count);
}

static void hands_the_result_to_the_loop(void **state)
{
    (void)state;
    struct crown_error err;
    assert_non_null(start(false, &err));
    loop_run(loop);
    assert_int_equal(1, done_count);
    assert_int_equal(0, atomic_load(&dropped));
}

static void one_that_is_given_up_hears_of_it(void **state)
{
    (void)state;
    struct crown_error err;
    helper_abandon(start(true, &err));
    await_dropped(1);
    assert_int_equal(0, done_count);
}

static void one_that_was_done_is_dropped_too(void **state)
{
    (void)state;
    struct crown_error err;
    const struct timespec pause = {.tv_nsec = 20000000};
    struct helper *helper = start(false, &err);
    (void)nanosleep(&pause, NULL); /* so that it mostly is done; either way it is dropped once */
    helper_abandon(helper);
    await_dropped(1);
}

/* --- with a table of its own */

static int opened_by_process;

/* Where nobody waits any more, `given_up` is readable in the other table, too. */
static void apart_run(void *work, int given_up)
{
    struct stat info;
    assert_int_equal(-1, fstat(opened_by_process, &info));
    assert_int_equal(0, fstat(STDERR_FILENO, &info));
    work_run(work, given_up);
}

static const struct helper_kind apart = {"apart", apart_run, work_done, work_drop, true};

static int count_descriptors(void)
{
    int count = 0;
    struct stat info;
    for (int fd = 0; fd < 256; fd++)
        count += fstat(fd, &info) == 0;
    return count;
}

static void start_apart(bool until_given_up, bool abandoned)
{
    struct crown_error err;
    struct work *work = calloc(1, sizeof(*work));
    assert_non_null(work);
    work->until_given_up = until_given_up;
    struct helper *helper = helper_start(loop, &apart, "it", work, loop, &err);
    assert_non_null(helper);
    if (abandoned)
        helper_abandon(helper);
    else
        loop_run(loop);
}

static void one_with_a_table_of_its_own_has_no_descriptor_of_the_process(void **state)
{
    (void)state;
    opened_by_process = dup(STDERR_FILENO);
    assert_true(opened_by_process > STDERR_FILENO);
    int before = count_descriptors();
    start_apart(false, false);
    assert_int_equal(1, done_count);
    for (int i = 0; i < 50; i++) {
        start_apart(i % 2 == 0, true); /* before it has begun, or later */
        await_dropped(i + 1);
    }
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && count_descriptors() != before; i++)
        (void)nanosleep(&pause, NULL); /* what had not begun closes its end last */
    assert_int_equal(before, count_descriptors());
    assert_int_equal(0, close(opened_by_process));
}

static atomic_int number_of_end;

static void numbered_run(void *work, int given_up)
{
    atomic_store(&number_of_end, given_up);
    apart_run(work, given_up);
}

/* All below the end that it keeps would be copied and closed, for each thread. */
static void a_table_of_its_own_is_small_however_many_the_process_has(void **state)
{
    (void)state;
    static const struct helper_kind numbered = {"numbered", numbered_run, work_done, work_drop,
                                                true};
    struct crown_error err;
    int opened[200];
    for (size_t i = 0; i < sizeof(opened) / sizeof(opened[0]); i++)
        assert_true((opened[i] = dup(STDERR_FILENO)) >= 0);
    opened_by_process = opened[0];
    int before = count_descriptors();
    struct work *work = calloc(1, sizeof(*work));
    assert_non_null(work);
    assert_non_null(helper_start(loop, &numbered, "it", work, loop, &err));
    loop_run(loop);
    assert_int_equal(1, done_count);
    assert_in_range(atomic_load(&number_of_end), STDERR_FILENO + 1, STDERR_FILENO + 2);
    assert_int_equal(before, count_descriptors());
    for (int i = 0; i < 20; i++) {
        start_apart(i % 2 == 0, true);
        await_dropped(i + 1);
    }
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && count_descriptors() != before; i++)
        (void)nanosleep(&pause, NULL);
    assert_int_equal(before, count_descriptors());
    for (size_t i = 0; i < sizeof(opened) / sizeof(opened[0]); i++)
        assert_int_equal(0, close(opened[i]));
}

static void stubborn_run(void *work, int given_up)
{
    struct pollfd gate = {.fd = *(int *)work, .events = POLLIN};
    (void)given_up;
    (void)atomic_fetch_add(&begun, 1);
    assert_int_equal(1, poll(&gate, 1, 20000));
}

static void stubborn_drop(void *work)
{
    (void)work;
    (void)atomic_fetch_add(&dropped, 1);
}

static void only_so_many_run_on_for_one_cause(void **state)
{
    (void)state;
    static const struct helper_kind stubborn = {"stubborn", stubborn_run, work_done, stubborn_drop,
                                                false};
    struct crown_error err;
    int gate[2];
    assert_int_equal(0, pipe(gate));
    for (int i = 0; i < HELPERS_ABANDONED_MAX; i++) {
        struct helper *helper = helper_start(loop, &stubborn, "a disk", &gate[0], loop, &err);
        assert_non_null(helper);
        await(&begun, i + 1); /* else it is never run */
        helper_abandon(helper);
    }
    assert_null(helper_start(loop, &stubborn, "a disk", &gate[0], loop, &err));
    assert_string_equal("stubborn: 8 threads are still busy with a disk, though they were given up",
                        err.message);
    assert_non_null(start(false, &err)); /* for another cause */
    loop_run(loop);
    assert_int_equal(1, done_count);
    assert_int_equal(0, close(gate[1]));
    await_dropped(HELPERS_ABANDONED_MAX);
    assert_int_equal(0, close(gate[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hands_the_result_to_the_loop, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(one_that_is_given_up_hears_of_it, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(one_that_was_done_is_dropped_too, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(
            one_with_a_table_of_its_own_has_no_descriptor_of_the_process, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(a_table_of_its_own_is_small_however_many_the_process_has,
                                        open_loop, close_loop),
        cmocka_unit_test_setup_teardown(only_so_many_run_on_for_one_cause, open_loop, close_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* One timer of the kernel for all terms: the earliest of them counts. */
#include "candidate/deadmen.h"

#include "lone.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOON (20 * NS_PER_MS)
/* What is taken back before it comes, also on a slow machine. */
#define LATER (500 * NS_PER_MS)
#define LATE (600 * NS_PER_S)

static struct heap_node first, second;

static void set(struct heap_node *term, int64_t in_ns)
{
    deadmen_set(lone.env.deadmen, term, clock_add_ns(clock_boottime_ns(), in_ns));
}

static void pass_by(void)
{
    int64_t until_ns = clock_boottime_ns() + 2 * LATER;
    while (clock_boottime_ns() < until_ns)
        (void)poll(NULL, 0, 10); /* a signal may end it early */
}

static void wait_for_the_end(void)
{
    for (;;)
        (void)pause();
}

static void an_earlier_term_comes(void)
{
    set(&first, LATE);
    set(&second, SOON);
    wait_for_the_end();
}

static void the_earlier_term_goes(void)
{
    set(&first, LATER);
    set(&second, 2 * LATER);
    deadmen_set(lone.env.deadmen, &first, TIME_NEVER);
    wait_for_the_end();
}

static void one_is_brought_forward(void)
{
    set(&first, LATE);
    set(&first, SOON);
    wait_for_the_end();
}

static void one_is_moved_on(void)
{
    set(&first, LATER);
    set(&second, LATE);
    set(&first, LATE);
    pass_by();
}

static void all_go(void)
{
    set(&first, LATER);
    set(&second, LATER);
    deadmen_set(lone.env.deadmen, &second, TIME_NEVER);
    deadmen_set(lone.env.deadmen, &first, TIME_NEVER);
    pass_by();
}

static void the_earliest_term_ends_the_process(void **state)
{
    (void)state;
    assert_int_equal(WTERMSIG(lone_apart(an_earlier_term_comes)), SIGKILL);
    assert_int_equal(WTERMSIG(lone_apart(the_earlier_term_goes)), SIGKILL);
    assert_int_equal(WTERMSIG(lone_apart(one_is_brought_forward)), SIGKILL);
}

static void a_term_that_was_moved_on_or_is_over_ends_nothing(void **state)
{
    (void)state;
    assert_int_equal(lone_apart(one_is_moved_on), 0);
    assert_int_equal(lone_apart(all_go), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_term_ends_the_process),
        cmocka_unit_test(a_term_that_was_moved_on_or_is_over_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

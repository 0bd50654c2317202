#include "loop/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_S 60 /* far more than all of this takes */

static struct loop *loop;
static unsigned woken;
static unsigned cancelled;

static void wake(struct op *op)
{
    assert_false(op->pending);
    woken++;
}

static void cancel(struct op *op)
{
    (void)op;
    cancelled++;
}

static int open_loop(void **state)
{
    (void)state;
    struct crown_error err;
    (void)alarm(PATIENCE_S); /* a loop that does not end is a failure */
    loop = loop_new(&err);
    woken = cancelled = 0;
    if (loop != NULL)
        loop_set_virtual(loop, true);
    return loop == NULL ? -1 : 0;
}

static int close_loop(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static void run_queue(void)
{
    loop_advance(loop, 0);
}

static void completing_wakes_the_waiter_once_and_from_the_run_queue(void **state)
{
    (void)state;
    struct op op;
    op_init(&op, loop, cancel);
    op.wake = wake;
    op_complete(&op);
    op_complete(&op);
    assert_int_equal(woken, 0);
    run_queue();
    op_complete(&op);
    run_queue();
    assert_int_equal(woken, 1);
    assert_int_equal(cancelled, 0);
}

static void a_cancelled_op_does_not_wake_and_tells_its_owner_once(void **state)
{
    (void)state;
    struct op op;
    op_init(&op, loop, cancel);
    op.wake = wake;
    op_complete(&op); /* queued, then given up */
    op_cancel(&op);
    op_cancel(&op);
    assert_false(op.job.queued); /* its owner may free it now */
    op_complete(&op);
    assert_false(op.job.queued);
    run_queue();
    assert_int_equal(woken, 0);
    assert_int_equal(cancelled, 1);
}

static void an_op_without_an_owner_s_cancel_can_be_given_up(void **state)
{
    (void)state;
    struct op op;
    op_init(&op, loop, NULL);
    op.wake = wake;
    op_cancel(&op);
    run_queue();
    assert_int_equal(woken, 0);
}

static void an_op_may_complete_before_anybody_waits(void **state)
{
    (void)state;
    struct op op;
    op_init(&op, loop, cancel);
    op_complete(&op);
    op.wake = wake;
    run_queue();
    assert_int_equal(woken, 1);
}

static void an_op_can_be_used_again(void **state)
{
    (void)state;
    struct op op;
    for (unsigned i = 1; i <= 3; i++) {
        op_init(&op, loop, cancel);
        op.wake = wake;
        op_complete(&op);
        run_queue();
        assert_int_equal(woken, i);
    }
}

#define OP_TEST(name) cmocka_unit_test_setup_teardown(name, open_loop, close_loop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OP_TEST(completing_wakes_the_waiter_once_and_from_the_run_queue),
        OP_TEST(a_cancelled_op_does_not_wake_and_tells_its_owner_once),
        OP_TEST(an_op_without_an_owner_s_cancel_can_be_given_up),
        OP_TEST(an_op_may_complete_before_anybody_waits),
        OP_TEST(an_op_can_be_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

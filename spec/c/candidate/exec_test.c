/* A command of crown.exec lives no longer than what has started it. */
#include "child/exec.h"

#include "lone.h"

#include <unistd.h>

static struct scope *scope;
static struct exec *exec;
static struct scope_instants instants;
static int64_t now_ns;

static void nothing_is_left(void *context)
{
    (void)context;
    loop_stop(lone.env.loop);
}

static int open_scope(void **state)
{
    static const struct scope_owner owner = {.empty = nothing_is_left, .owns_processes = true};
    if (lone_open(state) < 0)
        return -1;
    now_ns = clock_boottime_ns();
    instants = (struct scope_instants){.stop_at_ns = now_ns + 100 * NS_PER_S,
                                       .kill_at_ns = now_ns + 200 * NS_PER_S,
                                       .deadline_ns = now_ns + 300 * NS_PER_S};
    scope = scope_new(&owner, NULL);
    if (scope == NULL)
        return -1;
    scope_set_instants(scope, &instants);
    return 0;
}

/* Its keeper says that it is gone. */
static int close_scope(void **state)
{
    const struct wire_message gone = {.type = WIRE_GONE};
    exec_free(exec);
    scope_close(scope);
    if (lone.keeper >= 0) {
        if (wire_send(lone.keeper, &gone, NULL, 0, NULL) < 0)
            return -1;
        loop_run(lone.env.loop);
    }
    scope_free(scope);
    return lone_close(state);
}

static void start(int64_t kill_at_ns)
{
    static char *const argv[] = {(char *)"the-command", NULL};
    struct child_spec spec = {.argv = argv, .envp = argv + 1, .label = "test"};
    exec = exec_start(&lone.children, scope, &spec, kill_at_ns, NULL, 0, NULL);
    assert_non_null(exec);
    lone_hear_start();
}

static void assert_killed_now(void)
{
    const struct wire_message message = lone_hear();
    assert_int_equal(message.type, WIRE_STOP_CHILD);
    assert_in_range(message.kill_at_ns, now_ns, clock_boottime_ns());
}

static void it_is_killed_with_its_scope_or_when_its_own_time_is_up(void **state)
{
    (void)state;
    start(now_ns + 150 * NS_PER_S);
    assert_true(lone.spec.stop_at_ns == instants.stop_at_ns);
    assert_true(lone.spec.kill_at_ns == now_ns + 150 * NS_PER_S);
    assert_true(lone.spec.deadline_ns == instants.deadline_ns);
}

static void its_own_time_is_no_longer_than_the_scopes(void **state)
{
    (void)state;
    start(now_ns + 250 * NS_PER_S);
    assert_true(lone.spec.kill_at_ns == instants.kill_at_ns);
}

static void it_hears_of_new_instants(void **state)
{
    (void)state;
    const struct scope_instants later = {.stop_at_ns = now_ns + 500 * NS_PER_S,
                                         .kill_at_ns = now_ns + 600 * NS_PER_S,
                                         .deadline_ns = now_ns + 700 * NS_PER_S};
    start(now_ns + 550 * NS_PER_S);
    scope_set_instants(scope, &later);
    const struct wire_message message = lone_hear();
    assert_int_equal(message.type, WIRE_SET_DEADLINE);
    assert_true(message.stop_at_ns == later.stop_at_ns);
    assert_true(message.kill_at_ns == now_ns + 550 * NS_PER_S);
    assert_true(message.deadline_ns == later.deadline_ns);
}

static void it_is_killed_when_its_scope_ends(void **state)
{
    (void)state;
    start(TIME_NEVER);
    scope_close(scope);
    assert_killed_now();
}

static void it_is_killed_when_nobody_waits_for_it_any_more(void **state)
{
    (void)state;
    start(TIME_NEVER);
    op_cancel(exec_op(exec));
    assert_killed_now();
}

static bool was_waited_for;

static void say_that_its_tree_is_gone(struct loop_deadline *deadline)
{
    const struct wire_message failed = {.type = WIRE_KEEPER_FAILED, .id = 1};
    (void)deadline;
    was_waited_for = true;
    children_keeper_failed(&lone.children, &failed);
}

/* Who has killed the keeper may not have killed the tree: the supervisor does, and says so. */
static void it_is_not_gone_with_its_keeper(void **state)
{
    (void)state;
    struct loop_deadline later = {.fire = say_that_its_tree_is_gone};
    was_waited_for = false;
    start(TIME_NEVER);
    scope_close(scope);
    assert_int_equal(close(lone.keeper), 0);
    lone.keeper = -1;
    loop_at(lone.env.loop, &later, loop_now(lone.env.loop) + 50 * NS_PER_MS);
    loop_run(lone.env.loop);
    assert_true(was_waited_for);
}

#define EXEC_TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXEC_TEST(it_is_killed_with_its_scope_or_when_its_own_time_is_up),
        EXEC_TEST(its_own_time_is_no_longer_than_the_scopes),
        EXEC_TEST(it_hears_of_new_instants),
        EXEC_TEST(it_is_killed_when_its_scope_ends),
        EXEC_TEST(it_is_killed_when_nobody_waits_for_it_any_more),
        EXEC_TEST(it_is_not_gone_with_its_keeper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

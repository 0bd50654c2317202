/* What hears of a term's instants, and until when the runtime's own timer is armed. */
#include "candidate/term.h"

#include "lone.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/container.h"

#define SOON (20 * NS_PER_MS)

static struct scope_member member;
static struct scope_instants heard;

static void leave(struct scope_member *ended)
{
    scope_leave(ended);
}

static void hear(struct scope_member *told, const struct scope_instants *instants)
{
    assert_ptr_equal(told, &member);
    heard = *instants;
}

static const struct scope_kind here = {.name = "task", .end = leave};
static const struct scope_kind elsewhere = {.name = "exec", .end = leave, .set_instants = hear};

static int open_lone(void **state)
{
    member = (struct scope_member){.scope = NULL};
    return lone_open(state);
}

static void lead_until(int64_t at_ns)
{
    const struct election_action action = {
        .stop_at_ns = at_ns - 2, .kill_at_ns = at_ns - 1, .deadline_ns = at_ns};
    term_set_instants(&lone.candidate, &action);
}

static void commands_hear_of_each_refresh(void **state)
{
    (void)state;
    const int64_t hour_ns = clock_boottime_ns() + 3600 * NS_PER_S;
    lead_until(hour_ns);
    term_begin(&lone.candidate, 1);
    assert_true(scope_instants(lone.candidate.term->scope)->deadline_ns == hour_ns);
    assert_true(scope_enter(lone.candidate.term->scope, &member, &elsewhere));
    lead_until(2 * hour_ns);
    assert_true(heard.stop_at_ns == 2 * hour_ns - 2);
    assert_true(heard.kill_at_ns == 2 * hour_ns - 1);
    assert_true(heard.deadline_ns == 2 * hour_ns);
}

static void work_until_soon(const struct scope_kind *kind)
{
    member = (struct scope_member){.scope = NULL};
    lead_until(clock_boottime_ns() + 3600 * NS_PER_S);
    term_begin(&lone.candidate, 1);
    if (!scope_enter(lone.candidate.term->scope, &member, kind))
        _exit(98);
    lead_until(clock_boottime_ns() + SOON);
}

static void pass_by(void)
{
    int64_t until_ns = clock_boottime_ns() + 2 * SOON;
    while (clock_boottime_ns() < until_ns)
        continue;
}

static void work_past_the_deadline(void)
{
    work_until_soon(&here);
    for (;;)
        (void)pause();
}

static void leave_in_time(void)
{
    work_until_soon(&here);
    scope_leave(&member);
    pass_by();
}

static void forget_in_time(void)
{
    work_until_soon(&here);
    term_forget(&lone.candidate);
    pass_by();
}

static void run_a_command_past_the_deadline(void)
{
    work_until_soon(&elsewhere);
    pass_by();
}

static void lua_does_not_outlive_the_deadline(void **state)
{
    (void)state;
    assert_int_equal(WTERMSIG(lone_apart(work_past_the_deadline)), SIGKILL);
}

static void a_term_without_lua_costs_no_runtime(void **state)
{
    (void)state;
    assert_int_equal(lone_apart(leave_in_time), 0);
    assert_int_equal(lone_apart(forget_in_time), 0);
    assert_int_equal(lone_apart(run_a_command_past_the_deadline), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_hear_of_each_refresh, open_lone, lone_close),
        cmocka_unit_test(lua_does_not_outlive_the_deadline),
        cmocka_unit_test(a_term_without_lua_costs_no_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a command is started with, and what its keeper hears. */
#include "candidate/workload.h"

#include "lone.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "candidate/term.h"

static int64_t now_ns;

static int open_lone(void **state)
{
    now_ns = clock_boottime_ns();
    return lone_open(state);
}

static void start(enum election_role role)
{
    lone_start(role, now_ns + 100 * NS_PER_S, now_ns + 200 * NS_PER_S, now_ns + 300 * NS_PER_S);
}

static void assert_instants(int64_t stop_s, int64_t kill_s, int64_t deadline_s)
{
    assert_true(lone.spec.stop_at_ns == now_ns + stop_s * NS_PER_S);
    assert_true(lone.spec.kill_at_ns == now_ns + kill_s * NS_PER_S);
    assert_true(lone.spec.deadline_ns == now_ns + deadline_s * NS_PER_S);
}

static const char *environment(const char *key)
{
    for (char *const *word = lone.spec.envp; *word != NULL; word++)
        if (strncmp(*word, key, strlen(key)) == 0 && (*word)[strlen(key)] == '=')
            return *word + strlen(key) + 1;
    return NULL;
}

static void hold_a_lock(void)
{
    lone.candidate.term->hold.fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(lone.candidate.term->hold.fds[0] >= 0);
}

static unsigned locks(void)
{
    assert_int_equal(close(lone.candidate.term->hold.fds[0]), 0);
    return lone.spec.hold_count;
}

static void a_leaders_command_has_the_terms_instants_epoch_and_lock(void **state)
{
    (void)state;
    hold_a_lock();
    start(ELECTION_ROLE_LEADER);
    assert_instants(100, 200, 300);
    assert_int_equal(locks(), 1);
    assert_string_equal(environment("CROWN_EPOCH"), "7");
    assert_string_equal(environment("CROWN_ROLE"), "leader");
    assert_string_equal(environment("CROWN_ELECTION"), "lone");
    assert_string_equal(environment("CROWN_NODE"), "one");
}

static void a_followers_command_has_the_leaders_epoch_and_no_lock(void **state)
{
    (void)state;
    hold_a_lock();
    start(ELECTION_ROLE_FOLLOWER);
    assert_int_equal(locks(), 0);
    assert_string_equal(environment("CROWN_EPOCH"), "6");
    assert_string_equal(environment("CROWN_ROLE"), "follower");
}

static void a_command_is_started_as_its_options_say(void **state)
{
    (void)state;
    gid_t groups[] = {13, 14};
    lone.options.cwd = (char *)"/somewhere";
    lone.options.set_ids = true;
    lone.options.uid = 11;
    lone.options.gid = 12;
    lone.options.groups = groups;
    lone.options.group_count = 2;
    lone.options.stop_signal = SIGHUP;
    lone.options.isolation = CHILD_ISOLATION_PIDNS;
    lone.options.terminal = lone.options.escalate = true;
    start(ELECTION_ROLE_LEADER);
    const struct child_spec *spec = &lone.spec;
    assert_string_equal(spec->argv[0], "the-command");
    assert_null(spec->argv[1]);
    assert_string_equal(spec->cwd, "/somewhere");
    assert_string_equal(spec->label, "lone");
    assert_true(spec->set_ids);
    assert_int_equal(spec->uid, 11);
    assert_int_equal(spec->gid, 12);
    assert_int_equal(spec->group_count, 2);
    assert_int_equal(spec->groups[0], 13);
    assert_int_equal(spec->groups[1], 14);
    assert_int_equal(spec->stop_signal, SIGHUP);
    assert_int_equal(spec->lease_signal, 0);
    assert_int_equal(spec->isolation, CHILD_ISOLATION_PIDNS);
    assert_true(spec->terminal && spec->escalate && spec->ctrl_c_ends);
}

static void a_command_whose_end_is_the_programs_hears_of_ctrl_c_itself(void **state)
{
    (void)state;
    lone.options.decides = true;
    start(ELECTION_ROLE_LEADER);
    assert_false(lone.spec.ctrl_c_ends);
    assert_false(lone.spec.set_ids || lone.spec.terminal || lone.spec.escalate);
    assert_int_equal(lone.spec.isolation, CHILD_ISOLATION_TREE);
    assert_int_equal(lone.spec.stop_signal, SIGTERM);
}

/* It lives on into the time of another leader, who must get the lock. */
static void a_signalled_command_is_told_and_has_neither_deadline_nor_lock(void **state)
{
    (void)state;
    lone.options.signalled = true;
    hold_a_lock();
    start(ELECTION_ROLE_LEADER);
    assert_int_equal(locks(), 0);
    assert_int_equal(lone.spec.lease_signal, SIGUSR2);
    assert_true(lone.spec.kill_at_ns == TIME_NEVER);
    assert_true(lone.spec.deadline_ns == TIME_NEVER);
}

static void a_fenced_command_is_killed_in_signal_mode_too(void **state)
{
    (void)state;
    lone.options.signalled = lone.options.fence = true;
    hold_a_lock();
    start(ELECTION_ROLE_LEADER);
    assert_instants(100, 200, 300);
    assert_int_equal(locks(), 1);
}

static void the_keeper_hears_of_each_refresh_and_of_the_stop(void **state)
{
    (void)state;
    start(ELECTION_ROLE_LEADER);
    const struct election_action refreshed = {
        .stop_at_ns = 1000, .kill_at_ns = 2000, .deadline_ns = INT64_MAX - 1};
    term_set_instants(&lone.candidate, &refreshed);
    struct wire_message message = lone_hear();
    assert_int_equal(message.type, WIRE_SET_DEADLINE);
    assert_true(message.stop_at_ns == 1000 && message.kill_at_ns == 2000 &&
                message.deadline_ns == INT64_MAX - 1);
    workload_stop(&lone.candidate, 3000);
    message = lone_hear();
    assert_int_equal(message.type, WIRE_STOP_CHILD);
    assert_true(message.kill_at_ns == 3000);
}

static void leave(enum election_hold hold)
{
    lone.options.signalled = lone.options.fence = true;
    start(ELECTION_ROLE_LEADER);
    lone.candidate.election.hold = hold;
    lone.candidate.election.kill_at_ns = now_ns + 200 * NS_PER_S;
    lone.candidate.election.deadline_ns = now_ns + 300 * NS_PER_S;
    workload_stop(&lone.candidate, now_ns + 5 * NS_PER_S);
}

/* Who has lost the lease may have lost it to somebody: the fence of its deadline stays up. */
static void a_fence_stands_when_the_lease_is_lost(void **state)
{
    (void)state;
    leave(ELECTION_HOLD_NO);
    const struct wire_message message = lone_hear();
    assert_int_equal(message.type, WIRE_SET_DEADLINE);
    assert_true(message.stop_at_ns == TIME_NEVER);
    assert_true(message.kill_at_ns == now_ns + 200 * NS_PER_S);
    assert_true(message.deadline_ns == now_ns + 300 * NS_PER_S);
    assert_non_null(lone.commands.standing);
}

static void a_fence_comes_down_before_the_lease_is_released(void **state)
{
    (void)state;
    leave(ELECTION_HOLD_YES);
    const struct wire_message message = lone_hear();
    assert_int_equal(message.type, WIRE_SET_DEADLINE);
    assert_true(message.kill_at_ns == now_ns + 5 * NS_PER_S);
    assert_true(message.deadline_ns == now_ns + 5 * NS_PER_S);
    assert_null(lone.commands.standing);
}

static void handle(int signal)
{
    (void)signal;
}

static void assert_told(int signal)
{
    const struct wire_message message = lone_hear();
    assert_int_equal(message.type, WIRE_SIGNAL);
    assert_int_equal(message.signal, signal);
}

/* The command is this process, which has handlers; its keeper is told to signal it. */
static void won_does_not_come_right_after_lost(void **state)
{
    (void)state;
    struct wire_message message;
    assert_true(signal(SIGUSR1, handle) != SIG_ERR && signal(SIGUSR2, handle) != SIG_ERR);
    lone.options.signalled = true;
    loop_set_virtual(lone.env.loop, true);
    start(ELECTION_ROLE_LEADER);
    lone.commands.workload->child.pid = getpid();
    workload_stop(&lone.candidate, now_ns + NS_PER_S);
    assert_told(SIGUSR2);
    assert_int_equal(lone_hear().type, WIRE_SET_DEADLINE);
    term_forget(&lone.candidate);
    term_begin(&lone.candidate, 8);
    workload_start(&lone.candidate, &(struct election_action){.role = ELECTION_ROLE_LEADER});
    assert_int_equal(lone_hear().type, WIRE_SET_DEADLINE);
    assert_int_equal(wire_receive(lone.keeper, &message, NULL, NULL, NULL), 0);
    loop_advance(lone.env.loop, 6 * NS_PER_S);
    assert_told(SIGUSR1);
}

/* In signal mode the command lives on between terms, beside one for followers. */
static void a_command_that_cannot_start_takes_none_along_that_lives_on(void **state)
{
    (void)state;
    struct wire_message message;
    const struct election_action follow = {.role = ELECTION_ROLE_FOLLOWER};
    leave(ELECTION_HOLD_NO);
    assert_int_equal(lone_hear().type, WIRE_SET_DEADLINE);
    const struct workload *living = lone.commands.standing;
    assert_non_null(living);
    assert_int_equal(close(lone.supervisor), 0); /* nobody starts a keeper any more */
    lone.supervisor = -1;
    workload_start(&lone.candidate, &follow);
    assert_null(lone.commands.workload);
    assert_ptr_equal(lone.commands.standing, living);
    /* Its keeper still has its line, and is told nothing. */
    assert_int_equal(wire_receive(lone.keeper, &message, NULL, NULL, NULL), 0);
}

#define LONE_TEST(name) cmocka_unit_test_setup_teardown(name, open_lone, lone_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LONE_TEST(a_leaders_command_has_the_terms_instants_epoch_and_lock),
        LONE_TEST(a_followers_command_has_the_leaders_epoch_and_no_lock),
        LONE_TEST(a_command_is_started_as_its_options_say),
        LONE_TEST(a_command_whose_end_is_the_programs_hears_of_ctrl_c_itself),
        LONE_TEST(a_signalled_command_is_told_and_has_neither_deadline_nor_lock),
        LONE_TEST(a_fenced_command_is_killed_in_signal_mode_too),
        LONE_TEST(the_keeper_hears_of_each_refresh_and_of_the_stop),
        LONE_TEST(a_fence_stands_when_the_lease_is_lost),
        LONE_TEST(a_fence_comes_down_before_the_lease_is_released),
        LONE_TEST(won_does_not_come_right_after_lost),
        LONE_TEST(a_command_that_cannot_start_takes_none_along_that_lives_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What becomes of a command: when it is started and stopped, what its keeper hears, what is told of
 * its end. */
#include "whole.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

/* A term's instants are then close to whole seconds: 28, 30 and 30 after its claim. */
#define GRANTED "return 'granted', 10, 30.5, 7"

static void lead(void)
{
    whole_does("claim", GRANTED);
    whole_does("refresh", GRANTED);
    if (whole.config.child == NULL)
        whole.config.child = whole_command();
    whole_elect();
    whole_skip();
}

static void says(enum wire_type type)
{
    whole_keeper_says(type, (struct wire_message){.pid = 42, .status = 0});
}

static void has_started(void)
{
    lead();
    says(WIRE_STARTED);
    whole_skip();
}

static int exited(int code)
{
    return code << 8;
}

static void says_status(enum wire_type type, int status)
{
    whole_keeper_says(type, (struct wire_message){.pid = 42, .status = status});
}

static void ends_with(int status)
{
    says_status(WIRE_EXITED, status);
    says_status(WIRE_GONE, status);
}

static void decide(enum election_restart restart)
{
    whole.config.child = whole_command();
    whole.config.child->decides = true;
    whole.config.election.restart = restart;
}

/* --- in a term */

static void a_command_lives_in_its_term(void **state)
{
    (void)state;
    whole_does("claim", GRANTED);
    whole_does("refresh", GRANTED);
    whole.config.child = whole_command();
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "info  leadership.claimed phase=leading leader=one epoch=7",
               "debug leadership.changed phase=leading leader=one epoch=7", "shown leading, 1 lead",
               "supervisor hears prepare", "supervisor hears command stop=28 kill=30 deadline=30");
    says(WIRE_STARTED);
    assert_did("info  child.started phase=leading leader=one epoch=7 role=leader pid=42");
    whole_pass(10 * S);
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=7",
               "keeper hears deadline stop=28 kill=30 deadline=30");
    candidate_abdicate(whole.candidate);
    whole_pass(0);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "keeper hears stop kill=2");
    whole_keeper_says(WIRE_SIGNALLED, (struct wire_message){.signal = SIGTERM});
    assert_did("info  a: sent SIGTERM to 42");
    ends_with(SIGTERM);
    assert_did("info  child.stopped phase=finishing epoch=7 signal=15 role=leader pid=42",
               "asks abdicate false", "info  leadership.abdicated phase=following epoch=7",
               "shown following, 0 lead");
    struct candidate_status status;
    candidate_status(whole.candidate, &status);
    assert_true(status.child_ended);
    assert_int_equal(status.child_status, SIGTERM);
    assert_int_equal(status.child_pid, 0);
}

static void a_signal_goes_to_the_command_that_runs(void **state)
{
    (void)state;
    lead();
    assert_false(candidate_signal_child(whole.candidate, SIGHUP));
    says(WIRE_STARTED);
    whole_skip();
    assert_true(candidate_signal_child(whole.candidate, SIGHUP));
    assert_did("keeper hears signal 1");
    ends_with(0);
    assert_false(candidate_signal_child(whole.candidate, SIGHUP));
}

static void one_that_ends_is_started_again(void **state)
{
    (void)state;
    has_started();
    ends_with(exited(0));
    assert_did("warn  child.exited phase=leading leader=one epoch=7 code=0 role=leader pid=42",
               "info  child.stopped phase=leading leader=one epoch=7 code=0 role=leader pid=42");
    whole_pass(S);
    assert_did("supervisor hears command stop=28 kill=30 deadline=30");
}

static void one_that_fails_may_end_the_term(void **state)
{
    (void)state;
    whole.config.election.restart = ELECTION_RESTART_TEMPORARY;
    has_started();
    ends_with(exited(3));
    assert_did("warn  child.exited phase=leading leader=one epoch=7 code=3 role=leader pid=42",
               "info  child.stopped phase=leading leader=one epoch=7 code=3 role=leader pid=42",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=child_failed",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void one_that_succeeds_ends_no_term(void **state)
{
    (void)state;
    whole.config.election.restart = ELECTION_RESTART_TEMPORARY;
    has_started();
    ends_with(exited(0));
    assert_did("warn  child.exited phase=leading leader=one epoch=7 code=0 role=leader pid=42",
               "info  child.stopped phase=leading leader=one epoch=7 code=0 role=leader pid=42");
}

static void one_that_was_killed_is_not_to_blame(void **state)
{
    (void)state;
    whole.config.election.restart = ELECTION_RESTART_TEMPORARY;
    has_started();
    says(WIRE_KILLED);
    says_status(WIRE_GONE, SIGKILL);
    assert_did("warn  child.killed phase=leading leader=one epoch=7 role=leader pid=42",
               "info  child.stopped phase=leading leader=one epoch=7 signal=9 role=leader pid=42",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=child_failed",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void the_death_of_its_keeper_is_told_with_the_reason(void **state)
{
    (void)state;
    whole.config.election.restart = ELECTION_RESTART_TEMPORARY;
    has_started();
    whole_keeper_says(WIRE_GONE, (struct wire_message){.status = SIGKILL, .text = "a hand"});
    assert_did(
        "warn  child.killed phase=leading leader=one epoch=7 error=\"a hand\" role=leader pid=42",
        "info  child.stopped phase=leading leader=one epoch=7 signal=9 role=leader pid=42",
        "warn  leadership.lost phase=finishing leader=one epoch=7 reason=child_failed",
        "shown finishing, 0 lead", "asks abdicate false",
        "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void one_that_cannot_start_ends_the_term(void **state)
{
    (void)state;
    lead();
    whole_keeper_says(WIRE_START_FAILED, (struct wire_message){.error = ENOENT, .text = "no file"});
    assert_did("warn  child.exited phase=leading leader=one epoch=7 error=\"no file\" role=leader");
    says(WIRE_GONE);
    assert_did("warn  leadership.lost phase=finishing leader=one epoch=7 reason=child_failed",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
    struct candidate_status status;
    candidate_status(whole.candidate, &status);
    assert_false(status.child_ended);
}

static void what_cannot_be_killed_is_told_of(void **state)
{
    (void)state;
    has_started();
    whole_keeper_says(WIRE_UNKILLABLE, (struct wire_message){.pid = 43, .error = EPERM});
    assert_did("error child.unkillable phase=leading leader=one epoch=7 role=leader pid=43 "
               "error=\"Operation not permitted\"");
    whole_keeper_says(WIRE_UNKILLABLE, (struct wire_message){.pid = 43, .text = "it hangs"});
    assert_did("error child.unkillable phase=leading leader=one epoch=7 role=leader pid=43 "
               "error=\"it hangs\"");
}

static void an_interrupt_stops_the_election(void **state)
{
    (void)state;
    has_started();
    says(WIRE_INTERRUPTED);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=shutdown",
               "shown finishing, 0 lead", "keeper hears stop kill=2");
}

static void a_follower_has_a_command_too(void **state)
{
    (void)state;
    whole_does("claim", "return 'denied', 5, 'two', 6");
    whole.config.child = whole_command();
    whole.config.follower_child = whole_command();
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "debug leadership.rejected phase=following leader=two epoch=6",
               "info  leadership.changed phase=following leader=two epoch=6",
               "supervisor hears prepare",
               "supervisor hears command stop=never kill=never deadline=never");
    says(WIRE_STARTED);
    assert_did("info  child.started phase=following leader=two epoch=6 role=follower pid=42");
    whole_does("claim", GRANTED);
    whole_does("refresh", GRANTED);
    whole_pass(6 * S);
    assert_did("asks claim", "debug monitor.timeout phase=leading leader=one epoch=7",
               "info  leadership.claimed phase=leading leader=one epoch=7",
               "debug leadership.changed phase=leading leader=one epoch=7", "shown leading, 1 lead",
               "supervisor hears prepare", "keeper hears stop kill=2");
    ends_with(exited(1));
    assert_did("info  child.stopped phase=leading leader=one epoch=7 code=1 role=follower pid=42",
               "supervisor hears command stop=33 kill=35 deadline=35");
    struct candidate_status status;
    candidate_status(whole.candidate, &status);
    assert_false(status.child_ended);
}

/* --- the program's exit code */

static void codes(enum election_restart restart, int status, bool stops)
{
    decide(restart);
    has_started();
    if (stops)
        candidate_stop(whole.candidate);
    whole_skip();
    ends_with(status);
}

static void a_command_that_decides_gives_its_code(void **state)
{
    (void)state;
    codes(ELECTION_RESTART_FINISH, exited(3), false);
    assert_did("info  child.exited phase=leading leader=one epoch=7 code=3 role=leader pid=42",
               "info  child.stopped phase=leading leader=one epoch=7 code=3 role=leader pid=42",
               "exit code 3",
               "info  leadership.lost phase=finishing leader=one epoch=7 reason=shutdown",
               "shown finishing, 0 lead", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

static void one_that_a_signal_ended_has_the_code_of_a_shell(void **state)
{
    (void)state;
    codes(ELECTION_RESTART_FINISH, SIGSEGV, false);
    assert_did("info  child.exited phase=leading leader=one epoch=7 signal=11 role=leader pid=42",
               "info  child.stopped phase=leading leader=one epoch=7 signal=11 role=leader pid=42",
               "exit code 139",
               "info  leadership.lost phase=finishing leader=one epoch=7 reason=shutdown",
               "shown finishing, 0 lead", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

static void an_end_that_was_asked_for_is_no_failure(void **state)
{
    (void)state;
    codes(ELECTION_RESTART_FINISH, SIGTERM, true);
    assert_did("info  child.stopped phase=finishing epoch=7 signal=15 role=leader pid=42",
               "exit code 0", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

static void an_interrupt_that_was_asked_for_is_no_failure(void **state)
{
    (void)state;
    codes(ELECTION_RESTART_FINISH, exited(128 + SIGINT), true);
    assert_did("info  child.stopped phase=finishing epoch=7 code=130 role=leader pid=42",
               "exit code 0", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

static void another_end_is_one_also_where_it_was_asked_to_end(void **state)
{
    (void)state;
    codes(ELECTION_RESTART_FINISH, SIGSEGV, true);
    assert_did("info  child.stopped phase=finishing epoch=7 signal=11 role=leader pid=42",
               "exit code 139", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

static void one_that_we_have_ended_gives_no_code(void **state)
{
    (void)state;
    decide(ELECTION_RESTART_FINISH);
    has_started();
    candidate_abdicate(whole.candidate);
    whole_skip();
    ends_with(exited(3));
    assert_did("info  child.stopped phase=finishing epoch=7 code=3 role=leader pid=42",
               "asks abdicate false", "info  leadership.abdicated phase=following epoch=7",
               "shown following, 0 lead");
}

static void one_that_its_keeper_has_stopped_gives_no_code(void **state)
{
    (void)state;
    decide(ELECTION_RESTART_PERMANENT);
    has_started();
    whole_keeper_says(WIRE_SIGNALLED, (struct wire_message){.signal = SIGTERM});
    ends_with(exited(3));
    assert_did("info  a: sent SIGTERM to 42",
               "info  child.stopped phase=leading leader=one epoch=7 code=3 role=leader pid=42");
}

static void start_failed(int error)
{
    decide(ELECTION_RESTART_FINISH);
    lead();
    whole_keeper_says(WIRE_START_FAILED, (struct wire_message){.error = error, .text = "no"});
    says(WIRE_GONE);
}

static void one_that_is_not_there_has_a_code_of_its_own(void **state)
{
    (void)state;
    start_failed(ENOENT);
    assert_did("warn  child.exited phase=leading leader=one epoch=7 error=no role=leader",
               "exit code 127",
               "info  leadership.lost phase=finishing leader=one epoch=7 reason=shutdown",
               "shown finishing, 0 lead", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

static void one_that_cannot_be_executed_has_one_too(void **state)
{
    (void)state;
    start_failed(EACCES);
    assert_did("warn  child.exited phase=leading leader=one epoch=7 error=no role=leader",
               "exit code 126",
               "info  leadership.lost phase=finishing leader=one epoch=7 reason=shutdown",
               "shown finishing, 0 lead", "asks abdicate true",
               "info  leadership.abdicated phase=finishing epoch=7", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

#define WHOLE_TEST(name) cmocka_unit_test_setup_teardown(name, whole_open, whole_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(a_command_lives_in_its_term),
        WHOLE_TEST(a_signal_goes_to_the_command_that_runs),
        WHOLE_TEST(one_that_ends_is_started_again),
        WHOLE_TEST(one_that_fails_may_end_the_term),
        WHOLE_TEST(one_that_succeeds_ends_no_term),
        WHOLE_TEST(one_that_was_killed_is_not_to_blame),
        WHOLE_TEST(the_death_of_its_keeper_is_told_with_the_reason),
        WHOLE_TEST(one_that_cannot_start_ends_the_term),
        WHOLE_TEST(what_cannot_be_killed_is_told_of),
        WHOLE_TEST(an_interrupt_stops_the_election),
        WHOLE_TEST(a_follower_has_a_command_too),
        WHOLE_TEST(a_command_that_decides_gives_its_code),
        WHOLE_TEST(one_that_a_signal_ended_has_the_code_of_a_shell),
        WHOLE_TEST(an_end_that_was_asked_for_is_no_failure),
        WHOLE_TEST(an_interrupt_that_was_asked_for_is_no_failure),
        WHOLE_TEST(another_end_is_one_also_where_it_was_asked_to_end),
        WHOLE_TEST(one_that_we_have_ended_gives_no_code),
        WHOLE_TEST(one_that_its_keeper_has_stopped_gives_no_code),
        WHOLE_TEST(one_that_is_not_there_has_a_code_of_its_own),
        WHOLE_TEST(one_that_cannot_be_executed_has_one_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

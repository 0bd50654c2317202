/* Signal mode: a command that lives from term to term, and hears by signals whether it leads. This
 * process stands for it, with the handlers that it has. */
#include "whole.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRANTED "return 'granted', 10, 30.5, 7"

static char epoch_file[64];

static void handle(int signal)
{
    (void)signal;
}

static void on_signal(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    assert_int_equal(sigaction(signal, &action, NULL), 0);
}

static int open_signalled(void **state)
{
    if (whole_open(state) < 0)
        return -1;
    on_signal(SIGUSR1, handle);
    on_signal(SIGUSR2, handle);
    (void)snprintf(epoch_file, sizeof(epoch_file), "/tmp/epoch.%d", (int)getpid());
    whole.config.child = whole_command();
    whole.config.child->signalled = true;
    whole.config.child->epoch_file = strdup(epoch_file);
    whole_does("claim", GRANTED);
    whole_does("refresh", GRANTED);
    return 0;
}

static int close_signalled(void **state)
{
    int result = whole_close(state);
    (void)unlink(epoch_file);
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU,
                                  SIGXFSZ, SIGSYS,  SIGTERM, SIGTSTP,   SIGTTOU};
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        on_signal(signals[i], SIG_DFL);
    return result;
}

static void says(enum wire_type type, int status)
{
    whole_keeper_says(type, (struct wire_message){.pid = getpid(), .status = status});
}

static void start(void)
{
    whole_elect();
    whole_skip();
    says(WIRE_STARTED, 0);
}

static const char *epoch(void)
{
    static char text[32];
    FILE *file = fopen(epoch_file, "re");
    if (file == NULL)
        return "no file";
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    text[size] = '\0';
    assert_int_equal(fclose(file), 0);
    return text;
}

static void lose(void)
{
    candidate_abdicate(whole.candidate);
    whole_pass(0);
}

static void it_is_told_of_each_win_and_each_loss(void **state)
{
    (void)state;
    struct candidate_status status;
    start();
    assert_did("info  child.started phase=leading leader=one epoch=7 role=leader pid=SELF",
               "info  a: sent SIGUSR1 to SELF", "keeper hears signal 10");
    assert_string_equal(epoch(), "7\n");
    whole_skip();
    lose();
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "info  a: sent SIGUSR2 to SELF", "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead",
               "keeper hears signal 12",
               "keeper hears deadline stop=never kill=never deadline=never");
    assert_string_equal(epoch(), "");
    candidate_status(whole.candidate, &status);
    assert_int_equal(status.child_pid, getpid());
    assert_true(status.child_lives_on);
    assert_false(status.child_unfenced);
    assert_false(status.child_is_leader);
    whole_does("claim", "return 'granted', 10, 30.5, 8");
    whole_does("refresh", "return 'granted', 10, 30.5, 8");
    whole_skip();
    whole_pass(6 * S);
    assert_did("asks claim", "info  leadership.claimed phase=leading leader=one epoch=8",
               "info  a: sent SIGUSR1 to SELF",
               "debug leadership.changed phase=leading leader=one epoch=8", "shown leading, 1 lead",
               "keeper hears deadline stop=28 kill=never deadline=never", "keeper hears signal 10");
    assert_string_equal(epoch(), "8\n");
    candidate_status(whole.candidate, &status);
    assert_true(status.child_is_leader);
    assert_false(status.child_lives_on);
    whole_pass(10 * S);
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=8",
               "keeper hears deadline stop=28 kill=never deadline=never");
    candidate_stop(whole.candidate);
    whole_pass(0);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=8 reason=shutdown",
               "shown finishing, 0 lead", "keeper hears stop kill=2");
    says(WIRE_EXITED, SIGTERM);
    says(WIRE_GONE, SIGTERM);
    assert_string_equal(epoch(), "no file");
}

/* Then it may be asked what it leads by nobody. */
static void without_its_epoch_it_is_not_told(void **state)
{
    (void)state;
    free(whole.config.child->epoch_file);
    whole.config.child->epoch_file = strdup("/nowhere/at/all");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks claim",
               "info  leadership.claimed phase=leading leader=one epoch=7",
               "error a: the command is not told that it leads: write the epoch to "
               "/nowhere/at/all: No such file or directory",
               "debug leadership.changed phase=leading leader=one epoch=7", "shown leading, 1 lead",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=child_failed",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead",
               "supervisor hears prepare");
    assert_null(whole.candidate->commands->workload);
}

static void one_that_has_no_handler_is_not_told(void **state)
{
    (void)state;
    on_signal(SIGUSR1, SIG_DFL);
    start();
    whole_skip();
    whole_pass(5 * S - 1);
    assert_did(NULL);
    whole_pass(10 * NS_PER_MS);
    assert_did("warn  a: the command has no handler for SIGUSR1, which would end it: not sent");
    on_signal(SIGUSR1, handle);
    whole_pass(4 * S);
    assert_did(NULL);
}

static void a_command_outside_of_signal_mode_may_ask_to_be_told(void **state)
{
    (void)state;
    whole.config.child->signalled = false;
    whole.config.child->told = true;
    start();
    assert_did("info  child.started phase=leading leader=one epoch=7 role=leader pid=SELF",
               "info  a: sent SIGUSR1 to SELF", "keeper hears signal 10");
    lose();
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "keeper hears stop kill=2");
}

static void one_that_is_slow_to_begin_is_told_when_it_has_a_handler(void **state)
{
    (void)state;
    on_signal(SIGUSR1, SIG_DFL);
    start();
    whole_skip();
    whole_pass(S);
    assert_did(NULL);
    on_signal(SIGUSR1, handle);
    whole_pass(5 * NS_PER_MS);
    assert_did("info  a: sent SIGUSR1 to SELF", "keeper hears signal 10");
}

static void one_that_ignores_the_signal_may_be_sent_it(void **state)
{
    (void)state;
    on_signal(SIGUSR1, SIG_IGN);
    start();
    assert_did("info  child.started phase=leading leader=one epoch=7 role=leader pid=SELF",
               "info  a: sent SIGUSR1 to SELF", "keeper hears signal 10");
}

static void one_that_cannot_be_told_of_the_loss_is_told_of(void **state)
{
    (void)state;
    struct candidate_status status;
    start();
    on_signal(SIGUSR2, SIG_DFL);
    whole_skip();
    lose();
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "warn  child.unfenced phase=finishing epoch=7 pid=SELF", "shown finishing, 0 lead",
               "asks abdicate false", "info  leadership.abdicated phase=following epoch=7",
               "shown following, 0 lead",
               "keeper hears deadline stop=never kill=never deadline=never");
    candidate_status(whole.candidate, &status);
    assert_true(status.child_unfenced);
    assert_true(status.child_lives_on);
    whole_skip();
    whole_pass(4 * S);
    assert_did(NULL);
    whole_does("claim", "return 'granted', 10, 30.5, 8");
    whole_pass(2 * S);
    assert_did("asks claim", "info  leadership.claimed phase=leading leader=one epoch=8",
               "info  a: sent SIGUSR1 to SELF",
               "debug leadership.changed phase=leading leader=one epoch=8", "shown leading, 1 lead",
               "keeper hears deadline stop=28 kill=never deadline=never", "keeper hears signal 10");
    candidate_status(whole.candidate, &status);
    assert_false(status.child_unfenced);
}

/* A shell, or a script with a trap for EXIT, catches what would end it before it is ready. */
static void catch_as_a_shell(void)
{
    static const int signals[] = {SIGALRM, SIGVTALRM, SIGXCPU, SIGXFSZ, SIGSYS};
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        on_signal(signals[i], handle);
}

static void what_may_be_a_shell_is_looked_at_once_more(void **state)
{
    (void)state;
    catch_as_a_shell();
    start();
    whole_skip();
    whole_pass(S - 1);
    assert_did(NULL);
    whole_pass(1);
    assert_did("info  a: sent SIGUSR1 to SELF", "keeper hears signal 10");
    whole_pass(5 * S);
    assert_did(NULL);
    lose();
    whole_does("claim", "return 'granted', 10, 30.5, 8");
    while (whole.candidate->shown_phase != ELECTION_LEADING)
        whole_pass(NS_PER_S / 10);
    whole_skip();
    whole_pass(NS_PER_S / 2); /* as doubtful as the first time */
    assert_did(NULL);
    whole_pass(NS_PER_S);
    assert_did("info  a: sent SIGUSR1 to SELF", "keeper hears signal 10");
}

static void a_program_that_catches_almost_as_much_is_told_at_once(void **state)
{
    (void)state;
    catch_as_a_shell();
    on_signal(SIGXFSZ, SIG_DFL);
    start();
    assert_did("info  child.started phase=leading leader=one epoch=7 role=leader pid=SELF",
               "info  a: sent SIGUSR1 to SELF", "keeper hears signal 10");
}

static void an_interactive_shell_is_not_told(void **state)
{
    (void)state;
    catch_as_a_shell();
    on_signal(SIGTERM, SIG_IGN);
    on_signal(SIGTSTP, SIG_IGN);
    on_signal(SIGTTOU, SIG_IGN);
    start();
    whole_skip();
    whole_pass(6 * S);
    assert_did("warn  a: the command has no handler for SIGUSR1, which would end it: not sent");
}

static void one_that_is_ended_is_told_no_more(void **state)
{
    (void)state;
    on_signal(SIGUSR1, SIG_DFL);
    start();
    says(WIRE_EXITED, 0);
    on_signal(SIGUSR1, handle);
    whole_skip();
    whole_pass(6 * S);
    assert_did(NULL);
}

/* Its fence stays up where somebody else may lead by now. */
static void a_fence_stands_after_a_loss_and_falls_before_a_release(void **state)
{
    (void)state;
    whole.config.child->fence = true;
    start();
    whole_skip();
    whole_does("refresh", "return 'denied', 20, 'two', 8");
    whole_pass(10 * S);
    assert_did("asks refresh",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=denied",
               "info  a: sent SIGUSR2 to SELF",
               "info  leadership.changed phase=finishing leader=two epoch=8",
               "shown finishing, 0 lead", "shown following, 0 lead", "keeper hears signal 12",
               "keeper hears deadline stop=never kill=20 deadline=20");
    whole_does("claim", "return 'granted', 10, 30.5, 9");
    whole_does("refresh", "return 'granted', 10, 30.5, 9");
    whole_pass(25 * S);
    whole_skip();
    lose();
    assert_did("info  leadership.lost phase=finishing leader=one epoch=9 reason=abdicated",
               "info  a: sent SIGUSR2 to SELF", "shown finishing, 0 lead", "keeper hears signal 12",
               "keeper hears deadline stop=never kill=2 deadline=2");
    whole_pass(S);
    assert_did(NULL);
}

/* Neither the election nor the program ends with it: it was told to stop working. */
static void one_that_ends_between_terms_is_started_at_the_next_win(void **state)
{
    (void)state;
    whole.config.election.restart = ELECTION_RESTART_FINISH;
    whole.config.child->decides = true;
    struct candidate_status status;
    start();
    lose();
    whole_skip();
    says(WIRE_EXITED, 3 << 8);
    says(WIRE_GONE, 3 << 8);
    assert_did("info  child.stopped phase=following epoch=7 code=3 role=leader pid=SELF");
    candidate_status(whole.candidate, &status);
    assert_int_equal(status.child_pid, 0);
    assert_false(status.child_lives_on);
    whole_does("claim", "return 'granted', 10, 30.5, 8");
    whole_pass(6 * S);
    assert_did("asks claim", "info  leadership.claimed phase=leading leader=one epoch=8",
               "debug leadership.changed phase=leading leader=one epoch=8", "shown leading, 1 lead",
               "supervisor hears prepare",
               "supervisor hears command stop=33 kill=never deadline=never");
}

static void an_election_that_ends_stops_one_that_lives_on(void **state)
{
    (void)state;
    start();
    lose();
    whole_skip();
    candidate_stop(whole.candidate);
    whole_pass(0);
    assert_did("shown finishing, 0 lead", "keeper hears stop kill=2");
    whole_keeper_says(WIRE_SIGNALLED, (struct wire_message){.signal = SIGTERM});
    says(WIRE_EXITED, SIGTERM);
    says(WIRE_GONE, SIGTERM);
    assert_did("info  a: sent SIGTERM to SELF",
               "info  child.stopped phase=finishing epoch=7 signal=15 role=leader pid=SELF",
               "debug process.terminating phase=finishing epoch=7", "runtime is let go");
}

/* The runtime goes down meanwhile. */
static void an_election_that_ends_may_be_closed_before_its_command_has(void **state)
{
    (void)state;
    start();
    lose();
    candidate_stop(whole.candidate);
    whole_pass(0);
    whole_skip();
    assert_false(candidate_finished(whole.candidate));
    candidate_close(whole.candidate);
    assert_did("debug process.terminating phase=finishing epoch=7", "runtime is let go");
    assert_true(candidate_finished(whole.candidate));
    assert_int_equal(candidates_count(whole.env.candidates), 0);
}

#define SIGNAL_TEST(name) cmocka_unit_test_setup_teardown(name, open_signalled, close_signalled)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIGNAL_TEST(it_is_told_of_each_win_and_each_loss),
        SIGNAL_TEST(without_its_epoch_it_is_not_told),
        SIGNAL_TEST(one_that_has_no_handler_is_not_told),
        SIGNAL_TEST(a_command_outside_of_signal_mode_may_ask_to_be_told),
        SIGNAL_TEST(one_that_is_slow_to_begin_is_told_when_it_has_a_handler),
        SIGNAL_TEST(one_that_ignores_the_signal_may_be_sent_it),
        SIGNAL_TEST(one_that_cannot_be_told_of_the_loss_is_told_of),
        SIGNAL_TEST(what_may_be_a_shell_is_looked_at_once_more),
        SIGNAL_TEST(a_program_that_catches_almost_as_much_is_told_at_once),
        SIGNAL_TEST(an_interactive_shell_is_not_told),
        SIGNAL_TEST(one_that_is_ended_is_told_no_more),
        SIGNAL_TEST(a_fence_stands_after_a_loss_and_falls_before_a_release),
        SIGNAL_TEST(one_that_ends_between_terms_is_started_at_the_next_win),
        SIGNAL_TEST(an_election_that_ends_stops_one_that_lives_on),
        SIGNAL_TEST(an_election_that_ends_may_be_closed_before_its_command_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

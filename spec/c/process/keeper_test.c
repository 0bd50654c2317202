/* What a keeper does, call by call; how it and its warden end real processes is in the other tests
 * of this folder. */
#include "process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../support/whole_keeper.h"
#include "base/clock.h"
#include "process/signals.h"

#include <setjmp.h>

#include <cmocka.h>

#define S NS_PER_S
static int64_t at(int64_t seconds)
{
    return 1000 * S + seconds * S;
}

static void a_child_starts(void)
{
    whole_keeper_starts();
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = WHOLE_CHILD});
    notes_forget();
}

static void its_timers_are_set_before_there_is_a_warden(void **state)
{
    (void)state;
    whole_keeper_starts();
    assert_did("keeps 2 descriptors", "is on time", "takes orphans in (1)",
               "is told of its parent's death by 18", "is crown-keeper a", "begins a session",
               "dies at 16", "starts a warden for app, which dies at 18, stream none",
               "wakes at 10");
    keeper_wakes();
    assert_did_nothing();
}

static void without_a_lease_it_never_ends_by_itself(void **state)
{
    (void)state;
    struct child_spec *spec = &whole_keeper.spec;
    spec->stop_at_ns = spec->kill_at_ns = spec->deadline_ns = TIME_NEVER;
    spec->terminal = true;
    whole_keeper_starts();
    assert_did("keeps 2 descriptors", "is on time", "takes orphans in (1)",
               "is told of its parent's death by 18", "is crown-keeper a", "dies at never",
               "starts a warden for app, which dies at never, stream none");
}

static void of_a_lease_without_a_lead_all_timers_are_at_its_end(void **state)
{
    (void)state;
    whole_keeper.spec.kill_at_ns = whole_keeper.spec.deadline_ns;
    whole_keeper_starts();
    notes_forget();
    runtime_says((struct wire_message){
        .type = WIRE_SET_DEADLINE, .stop_at_ns = at(5), .kill_at_ns = at(9), .deadline_ns = at(9)});
    assert_did("dies at 9", "wakes at 5");
    runtime_says((struct wire_message){.type = WIRE_SET_DEADLINE,
                                       .stop_at_ns = TIME_NEVER,
                                       .kill_at_ns = at(9),
                                       .deadline_ns = TIME_NEVER});
    assert_did("dies at never", "wakes at 9");
    runtime_says((struct wire_message){.type = WIRE_SET_DEADLINE,
                                       .stop_at_ns = at(8),
                                       .kill_at_ns = at(12),
                                       .deadline_ns = at(10)});
    assert_did("dies at 10", "wakes at 8");
}

static void a_lease_that_will_not_end_any_more_wakes_nobody(void **state)
{
    (void)state;
    a_child_starts();
    runtime_says((struct wire_message){.type = WIRE_SET_DEADLINE,
                                       .stop_at_ns = TIME_NEVER,
                                       .kill_at_ns = TIME_NEVER,
                                       .deadline_ns = TIME_NEVER});
    assert_did("dies at never", "warden hears deadline never", "wakes at never");
    time_passes(3600 * S);
    assert_did_nothing();
}

static void a_keeper_that_cannot_keep_a_deadline_says_so(void **state)
{
    (void)state;
    whole_keeper.no_timer = true;
    whole_keeper_starts();
    assert_did("keeps 2 descriptors", "is on time",
               "runtime hears start_failed error=1 (the keeper could not be set up)",
               "runtime hears gone error=1 (the keeper could not be set up)", "ends with 0");
}

static void a_keeper_whose_supervisor_has_died_meanwhile_starts_nothing(void **state)
{
    (void)state;
    whole_process.parent = 1;
    whole_keeper_starts();
    assert_did("keeps 2 descriptors", "is on time", "takes orphans in (1)",
               "is told of its parent's death by 18",
               "runtime hears start_failed error=1 (the keeper could not be set up)",
               "runtime hears gone error=1 (the keeper could not be set up)", "ends with 0");
}

static void a_warden_that_cannot_be_had_is_told_of(void **state)
{
    (void)state;
    whole_keeper.no_warden = true;
    whole_keeper_starts();
    assert_did("keeps 2 descriptors", "is on time", "takes orphans in (1)",
               "is told of its parent's death by 18", "is crown-keeper a", "begins a session",
               "dies at 16", "runtime hears start_failed error=1 (no more processes)",
               "runtime hears gone error=1 (no more processes)", "ends with 0");
}

static void streams_are_the_childs_alone_and_locks_are_held(void **state)
{
    (void)state;
    struct child_spec *spec = &whole_keeper.spec;
    for (int i = 0; i < 3; i++)
        whole_keeper.streams[i] = memfd_create("stream", MFD_CLOEXEC);
    spec->stdio[0] = spec->stdio[1] = CHILD_STDIO_FD;
    spec->stdio_fd[0] = whole_keeper.streams[0];
    spec->stdio_fd[1] = whole_keeper.streams[1];
    spec->hold_fd[0] = whole_keeper.streams[2];
    spec->hold_count = 1;
    whole_keeper_starts();
    assert_did("keeps 5 descriptors", "is on time", "takes orphans in (1)",
               "is told of its parent's death by 18", "is crown-keeper a", "begins a session",
               "dies at 16", "starts a warden for app, which dies at 18, stream given",
               "wakes at 10");
    assert_int_equal(fcntl(whole_keeper.block, F_GETFD), -1);
    assert_int_equal(fcntl(whole_keeper.streams[0], F_GETFD), -1);
    assert_int_equal(fcntl(whole_keeper.streams[1], F_GETFD), -1);
    assert_int_not_equal(fcntl(whole_keeper.streams[2], F_GETFD), -1);
}

static void a_child_that_ends_ends_its_keeper_when_its_tree_is_gone(void **state)
{
    (void)state;
    a_child_starts();
    warden_says(
        (struct wire_message){.type = WIRE_EXITED, .pid = WHOLE_CHILD, .status = W_EXITCODE(3, 0)});
    assert_did("runtime hears exited pid=400 status=768");
    warden_dies();
    assert_did("kills the tree to its end, warden last", "runtime hears gone status=768",
               "ends with 0");
}

static void a_child_whose_warden_was_killed_is_told_as_killed(void **state)
{
    (void)state;
    a_child_starts();
    signal_comes(SIGCHLD, CLD_EXITED); /* of a daemon */
    assert_did_nothing();
    warden_dies();
    assert_did("kills the tree to its end, warden last",
               "runtime hears gone status=9 (its warden (crown-warden) was killed, or stood still "
               "until its time was up)",
               "ends with 0");
}

static void what_a_warden_said_as_it_died_is_heard(void **state)
{
    (void)state;
    a_child_starts();
    whole_keeper.says_exited_as_it_dies = true;
    warden_dies();
    assert_did("runtime hears exited status=1024", "kills the tree to its end, warden last",
               "runtime hears gone status=1024", "ends with 0");
}

/* Its death comes a moment after the end of its line. */
static void a_line_that_has_ended_is_looked_at_no_more(void **state)
{
    (void)state;
    a_child_starts();
    warden_hangs_up();
    assert_did_nothing();
    warden_dies();
    assert_did("kills the tree to its end, warden last",
               "runtime hears gone status=9 (its warden (crown-warden) was killed, or stood still "
               "until its time was up)",
               "ends with 0");
}

static void what_lives_on_as_another_user_is_told_of_before_the_end(void **state)
{
    (void)state;
    whole_process.refuses = 77;
    a_child_starts();
    warden_says((struct wire_message){.type = WIRE_EXITED, .pid = WHOLE_CHILD});
    warden_dies();
    assert_did("runtime hears exited pid=400", "kills the tree to its end, warden last",
               "runtime hears unkillable pid=77 error=1", "runtime hears gone", "ends with 0");
}

static void the_lease_ends_step_by_step(void **state)
{
    (void)state;
    a_child_starts();
    time_passes(10 * S - 1);
    assert_did_nothing();
    time_passes(1);
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15", "wakes at 12");
    time_passes(2 * S - 1);
    assert_did_nothing();
    time_passes(1);
    assert_did("dies at 20", "kills the tree, warden last", "says no more to the warden",
               "runtime hears killed", "kills the tree to its end, warden last",
               "runtime hears gone status=9", "ends with 0");
}

static void a_lease_that_goes_on_moves_all_instants(void **state)
{
    (void)state;
    const struct wire_message deadline = {.type = WIRE_SET_DEADLINE,
                                          .stop_at_ns = at(20),
                                          .kill_at_ns = at(22),
                                          .deadline_ns = at(30)};
    a_child_starts();
    time_passes(9 * S);
    runtime_says(deadline);
    assert_did("dies at 26", "warden hears deadline 28", "wakes at 20");
    time_passes(4 * S);
    runtime_says(deadline);
    assert_did("dies at 26", "warden hears deadline 28");
    time_passes(7 * S);
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15", "wakes at 22");
}

static void a_warden_that_starts_its_child_hears_of_the_deadline_afterwards(void **state)
{
    (void)state;
    whole_keeper_starts();
    notes_forget();
    runtime_says((struct wire_message){.type = WIRE_SET_DEADLINE,
                                       .stop_at_ns = at(20),
                                       .kill_at_ns = at(22),
                                       .deadline_ns = at(30)});
    assert_did("dies at 26", "wakes at 20");
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = WHOLE_CHILD});
    assert_did("warden hears deadline 28", "runtime hears started pid=400");
}

static void a_warden_whose_deadline_has_not_moved_need_not_hear_it(void **state)
{
    (void)state;
    whole_keeper.children = "412 "; /* of which the first is another one by now */
    whole_keeper_starts();
    notes_forget();
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = WHOLE_CHILD});
    assert_did("runtime hears started pid=400");
}

static void a_child_that_is_asked_is_killed_at_the_sooner_instant(void **state)
{
    (void)state;
    a_child_starts();
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = at(11)});
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15", "wakes at 11");
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = at(40)});
    assert_did("wakes at 12");
    runtime_says((struct wire_message){.type = WIRE_SET_DEADLINE,
                                       .stop_at_ns = TIME_NEVER,
                                       .kill_at_ns = at(50),
                                       .deadline_ns = at(60)});
    assert_did("dies at 55", "warden hears deadline 57.5", "wakes at 40");
    time_passes(40 * S);
    assert_did("dies at 60", "kills the tree, warden last", "says no more to the warden",
               "runtime hears killed", "kills the tree to its end, warden last",
               "runtime hears gone status=9", "ends with 0");
}

static void an_instant_that_was_before_the_clock_began_is_now(void **state)
{
    (void)state;
    a_child_starts();
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = 0});
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15", "wakes at -1000", "dies at 20",
               "kills the tree, warden last", "says no more to the warden", "runtime hears killed",
               "kills the tree to its end, warden last", "runtime hears gone status=9",
               "ends with 0");
}

static void an_escalating_stop_goes_on_after_a_second(void **state)
{
    (void)state;
    whole_keeper.spec.escalate = true;
    a_child_starts();
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = TIME_NEVER});
    assert_did("warden hears signal status=1 signal=2", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=2", "wakes at 1");
    time_passes(1 * S);
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15", "wakes at 12");
}

static void in_signal_mode_the_end_of_a_lease_is_told_once_and_stops_nothing(void **state)
{
    (void)state;
    whole_keeper.spec.lease_signal = SIGUSR1;
    a_child_starts();
    time_passes(10 * S);
    assert_did("warden hears signal signal=10", "wakes at 12");
    time_passes(1 * S);
    runtime_says((struct wire_message){.type = WIRE_SIGNAL, .signal = SIGUSR2});
    assert_did("warden hears signal signal=12");
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = TIME_NEVER});
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15");
}

static void in_signal_mode_a_second_signal_is_of_the_stop_alone(void **state)
{
    (void)state;
    whole_keeper.spec.lease_signal = SIGUSR1;
    whole_keeper.spec.escalate = true;
    a_child_starts();
    runtime_says((struct wire_message){.type = WIRE_STOP_CHILD, .kill_at_ns = TIME_NEVER});
    notes_forget();
    time_passes(1 * S);
    assert_did("warden hears signal status=1 signal=15", "warden hears signal status=1 signal=18",
               "runtime hears signalled signal=15", "wakes at 12");
}

static void a_runtime_that_is_gone_takes_the_tree_along(void **state)
{
    (void)state;
    a_child_starts();
    runtime_leaves();
    assert_did("dies at 20", "kills the tree, warden last", "says no more to the warden",
               "kills the tree to its end, warden last", "ends with 2");
}

static void a_supervisor_that_is_gone_takes_the_tree_along(void **state)
{
    (void)state;
    a_child_starts();
    signal_comes(SIGNAL_END, SI_USER); /* timeout(1) sends it to all */
    whole_process.parent = 1;
    signal_comes(SIGCHLD, CLD_EXITED);
    assert_did_nothing();
    signal_comes(SIGNAL_END, SI_KERNEL);
    assert_did("dies at 20", "kills the tree, warden last", "says no more to the warden",
               "runtime hears killed", "kills the tree to its end, warden last",
               "runtime hears gone status=9", "ends with 0");
}

static void a_wait_that_is_cut_short_ends_nothing_and_one_that_fails_ends_all(void **state)
{
    (void)state;
    a_child_starts();
    whole_process.poll_error = EINTR;
    keeper_wakes();
    assert_did_nothing();
    whole_process.poll_error = ENOMEM;
    keeper_wakes();
    assert_did("dies at 20", "kills the tree, warden last", "says no more to the warden",
               "runtime hears killed", "kills the tree to its end, warden last",
               "runtime hears gone status=9", "ends with 0");
}

static void in_a_namespace_the_child_is_told_by_its_number_outside(void **state)
{
    (void)state;
    whole_keeper.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_keeper.children = "412 ";
    whole_keeper_starts();
    notes_forget();
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = 2});
    assert_did("runtime hears started pid=412");
    assert_int_equal(fcntl(whole_keeper.list, F_GETFD), -1);
}

static void in_a_namespace_whose_warden_has_no_child_any_more_its_own_number_is_told(void **state)
{
    (void)state;
    whole_keeper.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_keeper.children = "";
    whole_keeper_starts();
    notes_forget();
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = 2});
    whole_keeper.children = NULL;
    warden_says((struct wire_message){.type = WIRE_STARTED, .pid = 3});
    assert_did("runtime hears started pid=2", "runtime hears started pid=3");
}

static void in_a_namespace_the_kernel_ends_the_tree_but_where_a_lock_is_held(void **state)
{
    (void)state;
    whole_keeper.spec.isolation = CHILD_ISOLATION_PIDNS;
    a_child_starts();
    runtime_leaves();
    assert_did("dies at 20", "kills the tree, nobody last", "says no more to the warden",
               "kills the tree to its end, nobody last", "ends with 2");
}

static void in_a_namespace_a_lock_is_held_to_the_end(void **state)
{
    (void)state;
    whole_keeper.streams[0] = memfd_create("lock", MFD_CLOEXEC);
    whole_keeper.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_keeper.spec.hold_fd[0] = whole_keeper.streams[0];
    whole_keeper.spec.hold_count = 1;
    a_child_starts();
    runtime_leaves();
    assert_did("dies at 20", "kills the tree, warden last", "says no more to the warden",
               "kills the tree to its end, warden last", "ends with 2");
}

/* What makes a warden say something to a keeper that is stopped: the kernel awakens it. */
static void a_word_of_the_warden_awakens_a_keeper_that_is_stopped(void **state)
{
    (void)state;
    whole_keeper_starts();
    const int line = whole_keeper.line;
    assert_int_equal(fcntl(line, F_GETOWN), getpid());
    assert_int_equal(fcntl(line, F_GETSIG), SIGCONT);
    assert_true(fcntl(line, F_GETFL) & O_ASYNC);
    assert_true(fcntl(line, F_GETFL) & O_NONBLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(its_timers_are_set_before_there_is_a_warden),
        WHOLE_TEST(without_a_lease_it_never_ends_by_itself),
        WHOLE_TEST(of_a_lease_without_a_lead_all_timers_are_at_its_end),
        WHOLE_TEST(a_lease_that_will_not_end_any_more_wakes_nobody),
        WHOLE_TEST(a_keeper_that_cannot_keep_a_deadline_says_so),
        WHOLE_TEST(a_keeper_whose_supervisor_has_died_meanwhile_starts_nothing),
        WHOLE_TEST(a_warden_that_cannot_be_had_is_told_of),
        WHOLE_TEST(streams_are_the_childs_alone_and_locks_are_held),
        WHOLE_TEST(a_child_that_ends_ends_its_keeper_when_its_tree_is_gone),
        WHOLE_TEST(a_child_whose_warden_was_killed_is_told_as_killed),
        WHOLE_TEST(what_a_warden_said_as_it_died_is_heard),
        WHOLE_TEST(a_line_that_has_ended_is_looked_at_no_more),
        WHOLE_TEST(what_lives_on_as_another_user_is_told_of_before_the_end),
        WHOLE_TEST(the_lease_ends_step_by_step),
        WHOLE_TEST(a_lease_that_goes_on_moves_all_instants),
        WHOLE_TEST(a_warden_that_starts_its_child_hears_of_the_deadline_afterwards),
        WHOLE_TEST(a_warden_whose_deadline_has_not_moved_need_not_hear_it),
        WHOLE_TEST(a_child_that_is_asked_is_killed_at_the_sooner_instant),
        WHOLE_TEST(an_instant_that_was_before_the_clock_began_is_now),
        WHOLE_TEST(an_escalating_stop_goes_on_after_a_second),
        WHOLE_TEST(in_signal_mode_the_end_of_a_lease_is_told_once_and_stops_nothing),
        WHOLE_TEST(in_signal_mode_a_second_signal_is_of_the_stop_alone),
        WHOLE_TEST(a_runtime_that_is_gone_takes_the_tree_along),
        WHOLE_TEST(a_supervisor_that_is_gone_takes_the_tree_along),
        WHOLE_TEST(a_wait_that_is_cut_short_ends_nothing_and_one_that_fails_ends_all),
        WHOLE_TEST(in_a_namespace_the_child_is_told_by_its_number_outside),
        WHOLE_TEST(in_a_namespace_whose_warden_has_no_child_any_more_its_own_number_is_told),
        WHOLE_TEST(in_a_namespace_the_kernel_ends_the_tree_but_where_a_lock_is_held),
        WHOLE_TEST(in_a_namespace_a_lock_is_held_to_the_end),
        WHOLE_TEST(a_word_of_the_warden_awakens_a_keeper_that_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

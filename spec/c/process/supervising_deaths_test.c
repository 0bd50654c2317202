/* What follows a death, call by call. */
#include "process/supervisor.h"

#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include "../../support/whole_supervisor.h"
#include "base/clock.h"

#include <setjmp.h>

#include <cmocka.h>

#define S NS_PER_S
#define MS NS_PER_MS

static void a_runtime_that_ends_unarmed_ends_all_with_its_code(void **state)
{
    (void)state;
    whole_supervisor_starts();
    notes_forget();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(3, 0));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "ends with 3");
}

static void a_runtime_that_is_killed_unarmed_ends_all_with_its_signal(void **state)
{
    (void)state;
    whole_supervisor_starts();
    notes_forget();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGSEGV));
    assert_did("looks whether it is stopped", "kills orphans, all but 0",
               "logs the runtime was ended by signal 11 (Segmentation fault)", "ends with 139");
}

static void an_armed_runtime_is_replaced_at_once_and_then_later_and_later(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "starts runtime 201",
               "runtime hears hello restarts=1 status=9, token of 32", "watches 201",
               "allows a silence of 0", "waits");
    runtime_says((struct wire_message){.type = WIRE_ARM});
    notes_forget();
    somebody_dies(WHOLE_RUNTIME + 1, W_EXITCODE(3, 0));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "waits 100 ms");
    time_passes(100 * MS - 1);
    assert_did("waits 1 ms");
    time_passes(1);
    assert_did("starts runtime 202", "runtime hears hello restarts=2 status=768, token of 32",
               "watches 202", "allows a silence of 0", "waits");
    runtime_says((struct wire_message){.type = WIRE_ARM});
    notes_forget();
    whole_supervisor.lasted_ns = 31 * S;
    somebody_dies(WHOLE_RUNTIME + 2, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "starts runtime 203",
               "runtime hears hello restarts=3 status=9, token of 32", "watches 203",
               "allows a silence of 0", "waits");
}

static void the_next_runtime_hears_what_the_last_one_was_killed_over(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    whole_supervisor.held = "in sleep";
    supervisor_wakes();
    notes_forget();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "starts runtime 201",
               "runtime hears held 0 0 in sleep",
               "runtime hears hello restarts=1 status=9, token of 32", "watches 201",
               "allows a silence of 0", "waits");
    whole_supervisor.held = "";
}

static void a_runtime_that_cannot_be_started_again_is_tried_again(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    whole_supervisor.no_runtime = true;
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "cannot start a runtime",
               "logs no more processes", "waits 5000 ms");
    whole_supervisor.no_runtime = false;
    time_passes(5 * S - 1);
    assert_did("waits 1 ms");
    time_passes(1);
    assert_did("starts runtime 201", "runtime hears hello restarts=2 status=9, token of 32",
               "watches 201", "allows a silence of 0", "waits");
}

static void one_that_cannot_be_started_at_all_is_the_end(void **state)
{
    (void)state;
    whole_supervisor.no_runtime = true;
    whole_supervisor_starts();
    assert_did("takes orphans in (1)", "is crown-supervise a", "cannot start a runtime",
               "logs no more processes", "ends with 1");
}

static void a_stop_while_nothing_runs_is_the_end(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    runtime_says((struct wire_message){.type = WIRE_ARM});
    somebody_dies(WHOLE_RUNTIME + 1, W_EXITCODE(0, SIGKILL));
    notes_forget();
    signal_comes(SIGTERM);
    assert_did("allows a silence of 2", "logs the runtime was ended by signal 9 (Killed)",
               "ends with 137");
}

static void the_next_runtime_waits_for_keepers_which_are_killed_after_two_seconds(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    runtime_starts_child(7);
    runtime_starts_child(8);
    runtime_starts_child(9);
    notes_forget();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "waits 2000 ms");
    time_passes(1500 * MS);
    assert_did("waits 500 ms");
    signal_comes(SIGCHLD); /* of one that is stopped, or was reaped before */
    assert_did("waits 500 ms");
    somebody_dies(WHOLE_KEEPER, W_EXITCODE(2, 0));
    assert_did("waits 2000 ms");
    time_passes(2 * S - 1);
    assert_did("waits 1 ms");
    time_passes(1);
    assert_did("sends 9 to 302", "sends 9 to 301",
               "logs a keeper did not end with its runtime: killed it", "waits");
    time_passes(10 * S);
    assert_did("waits");
    somebody_dies(WHOLE_KEEPER + 2, W_EXITCODE(0, SIGKILL)); /* SIGKILL is not sent again */
    assert_did("kills orphans, all but 0", "waits");
    somebody_dies(WHOLE_KEEPER + 1, W_EXITCODE(0, SIGKILL));
    assert_did("kills orphans, all but 0", "starts runtime 201",
               "runtime hears hello restarts=1 status=9, token of 32", "watches 201",
               "allows a silence of 0", "waits");
}

static void a_stop_while_keepers_end_starts_no_other_runtime(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    runtime_starts_child(7);
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    notes_forget();
    signal_comes(SIGTERM);
    assert_did("allows a silence of 2", "waits 2000 ms");
    somebody_dies(WHOLE_KEEPER, W_EXITCODE(0, 0));
    assert_did("logs the runtime was ended by signal 9 (Killed)", "ends with 137");
}

static void who_inherits_from_a_will_has_a_moment_before_the_next_runtime(void **state)
{
    (void)state;
    whole_supervisor.wills = true;
    whole_supervisor_starts_armed();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "executes a will",
               "waits 10 ms");
    time_passes(10 * MS - 1);
    assert_did("waits 1 ms");
    time_passes(1);
    assert_did("starts runtime 201", "runtime hears hello restarts=1 status=9, token of 32",
               "watches 201", "allows a silence of 0", "waits 1000 ms");
    runtime_says((struct wire_message){.type = WIRE_ARM});
    notes_forget();
    somebody_dies(WHOLE_RUNTIME + 1, W_EXITCODE(0, SIGKILL)); /* it waits for long enough anyway */
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "executes a will",
               "waits 100 ms");
}

static void the_end_waits_until_a_store_has_read_a_will(void **state)
{
    (void)state;
    whole_supervisor.wills = true;
    whole_supervisor_starts();
    notes_forget();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(4, 0));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "executes a will",
               "waits 1000 ms");
    store_closes();
    assert_did("sees that the will was read", "ends with 4");
}

static void a_runtime_that_begins_nothing_twice_is_not_replaced(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    runtime_says((struct wire_message){.type = WIRE_ONCE, .status = 9, .text = "enough"});
    assert_did("feels a beat", "waits");
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "logs enough",
               "ends with 9");
}

static void one_that_ended_in_order_ends_with_its_own_code(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    runtime_says((struct wire_message){.type = WIRE_ONCE, .status = 9, .text = "enough"});
    runtime_says((struct wire_message){.type = WIRE_DISARM});
    notes_forget();
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, 0));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "ends with 0");
}

static void orphans_that_cannot_be_killed_hold_all_up(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    whole_supervisor.orphans = 1;
    whole_supervisor.unkillable = 77;
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0",
               "logs process 77 of a tree cannot be killed (Operation not permitted): it must be "
               "ended by hand",
               "waits 2 ms");
    time_passes(3 * S);
    assert_did("kills orphans, all but 0", "waits 4 ms");
    whole_supervisor.orphans = 0;
    time_passes(1 * S);
    assert_did("kills orphans, all but 0", "starts runtime 201",
               "runtime hears hello restarts=1 status=9, token of 32", "watches 201",
               "allows a silence of 0", "waits");
}

static void an_orphan_that_cannot_be_killed_is_told_of_once_until_all_are_gone(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    whole_supervisor.orphans = 1;
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "waits 2 ms");
    whole_supervisor.unkillable = 77;
    time_passes(2 * MS);
    assert_did("kills orphans, all but 0",
               "logs process 77 of a tree cannot be killed (Operation not permitted): it must be "
               "ended by hand",
               "waits 4 ms");
    whole_supervisor.unkillable = 0;
    time_passes(4 * MS);
    whole_supervisor.unkillable = 77;
    time_passes(8 * MS);
    assert_did("kills orphans, all but 0", "waits 8 ms", "kills orphans, all but 0", "waits 16 ms");
}

static void as_process_1_it_leaves_strangers_alone(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    whole_supervisor.init = true;
    whole_supervisor.orphans = 1;
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans as process 1, all but 0",
               "waits 2 ms");
}

static void what_a_runtime_said_last_counts(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    runtime_said((struct wire_message){.type = WIRE_DISARM});
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, 0));
    assert_did("looks whether it is stopped", "feels a beat", "allows a silence of 0",
               "kills orphans, all but 0", "ends with 0");
}

static void a_runtime_that_has_hung_up_is_waited_for(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    runtime_hangs_up();
    assert_did("waits");
    supervisor_wakes();
    assert_did("waits");
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "starts runtime 201",
               "runtime hears hello restarts=1 status=9, token of 32", "watches 201",
               "allows a silence of 0", "waits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(a_runtime_that_ends_unarmed_ends_all_with_its_code),
        WHOLE_TEST(a_runtime_that_is_killed_unarmed_ends_all_with_its_signal),
        WHOLE_TEST(an_armed_runtime_is_replaced_at_once_and_then_later_and_later),
        WHOLE_TEST(the_next_runtime_hears_what_the_last_one_was_killed_over),
        WHOLE_TEST(a_runtime_that_cannot_be_started_again_is_tried_again),
        WHOLE_TEST(one_that_cannot_be_started_at_all_is_the_end),
        WHOLE_TEST(a_stop_while_nothing_runs_is_the_end),
        WHOLE_TEST(the_next_runtime_waits_for_keepers_which_are_killed_after_two_seconds),
        WHOLE_TEST(a_stop_while_keepers_end_starts_no_other_runtime),
        WHOLE_TEST(who_inherits_from_a_will_has_a_moment_before_the_next_runtime),
        WHOLE_TEST(the_end_waits_until_a_store_has_read_a_will),
        WHOLE_TEST(a_runtime_that_begins_nothing_twice_is_not_replaced),
        WHOLE_TEST(one_that_ended_in_order_ends_with_its_own_code),
        WHOLE_TEST(orphans_that_cannot_be_killed_hold_all_up),
        WHOLE_TEST(an_orphan_that_cannot_be_killed_is_told_of_once_until_all_are_gone),
        WHOLE_TEST(as_process_1_it_leaves_strangers_alone),
        WHOLE_TEST(what_a_runtime_said_last_counts),
        WHOLE_TEST(a_runtime_that_has_hung_up_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

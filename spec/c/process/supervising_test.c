/* What a supervisor does, call by call; how it ends real processes is in supervisor_test.c. */
#include "process/supervisor.h"

#include <errno.h>
#include <fcntl.h>
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

static void starts(void)
{
    whole_supervisor_starts();
    notes_forget();
}

static void a_runtime_is_greeted_and_may_be_silent_until_it_is_armed(void **state)
{
    (void)state;
    whole_supervisor_starts();
    assert_did("takes orphans in (1)", "is crown-supervise a", "starts runtime 200",
               "runtime hears hello restarts=0 status=0, token of 32", "watches 200",
               "allows a silence of 0", "waits");
    supervisor_wakes();
    assert_did("waits");
}

static void a_runtime_that_is_armed_may_be_silent_for_as_long_as_it_says(void **state)
{
    (void)state;
    starts();
    runtime_says((struct wire_message){.type = WIRE_ARM, .stop_at_ns = 5 * S});
    assert_did("feels a beat", "allows a silence of 5", "waits");
    runtime_says((struct wire_message){.type = WIRE_ARM});
    assert_did("feels a beat", "allows a silence of 2", "waits");
    runtime_says((struct wire_message){.type = WIRE_DISARM});
    assert_did("feels a beat", "allows a silence of 0", "waits");
}

static void a_heartbeat_says_until_when_there_is_nothing_to_do(void **state)
{
    (void)state;
    starts();
    runtime_says((struct wire_message){.type = WIRE_HEARTBEAT});
    assert_did("feels a beat", "waits");
    runtime_says((struct wire_message){.type = WIRE_HEARTBEAT, .stop_at_ns = 1005 * S});
    assert_did("feels a beat", "believes it idle until 5", "waits");
}

static void an_answer_is_no_beat(void **state)
{
    (void)state;
    starts();
    runtime_says((struct wire_message){.type = WIRE_HELD, .text = "sleep"});
    assert_did("hears that it does sleep", "waits");
}

static void a_runtime_has_its_title_shown_and_a_keeper_ready(void **state)
{
    (void)state;
    starts();
    runtime_says((struct wire_message){.type = WIRE_TITLE, .text = "leads"});
    assert_did("feels a beat", "shows leads", "waits");
    runtime_says((struct wire_message){.type = WIRE_PREPARE});
    assert_did("feels a beat", "makes a keeper ready", "waits");
    assert_int_not_equal(fcntl(whole_supervisor.spare, F_GETFD), -1);
    somebody_dies(WHOLE_SPARE, W_EXITCODE(0, 0));
    assert_int_equal(fcntl(whole_supervisor.spare, F_GETFD), -1);
    assert_did("looks whether it is stopped", "waits");
}

static void a_keeper_that_is_late_is_killed(void **state)
{
    (void)state;
    starts();
    runtime_starts_child(7);
    runtime_starts_child(8);
    notes_forget();
    runtime_says((struct wire_message){.type = WIRE_END_KEEPER, .id = 8});
    assert_did("feels a beat", "sends 9 to 301", "waits");
}

static void a_keeper_that_cannot_be_forked_is_told_of_at_once(void **state)
{
    (void)state;
    starts();
    whole_supervisor.no_keeper = true;
    runtime_starts_child(7);
    assert_did("feels a beat",
               "runtime hears failed 7 11 run the child: fork a keeper: no more processes are "
               "allowed (ulimit -u, TasksMax, pids.max)",
               "waits");
}

static void a_keeper_that_died_is_told_of_when_its_tree_is_gone(void **state)
{
    (void)state;
    starts();
    runtime_starts_child(7);
    notes_forget();
    whole_supervisor.orphans = 1;
    somebody_dies(WHOLE_KEEPER, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 200", "waits 2 ms");
    time_passes(1 * MS);
    assert_did("kills orphans, all but 200", "waits 4 ms");
    time_passes(2 * MS);
    time_passes(4 * MS);
    time_passes(8 * MS);
    time_passes(16 * MS);
    assert_did("kills orphans, all but 200", "waits 8 ms", "kills orphans, all but 200",
               "waits 16 ms", "kills orphans, all but 200", "waits 32 ms",
               "kills orphans, all but 200", "waits 50 ms");
    whole_supervisor.orphans = 0;
    time_passes(50 * MS);
    assert_did("kills orphans, all but 200", "runtime hears failed 7 0 ", "waits");
    supervisor_wakes();
    assert_did("waits");
}

static void a_keeper_that_ended_in_order_leaves_nothing_to_clean(void **state)
{
    (void)state;
    starts();
    runtime_starts_child(7);
    notes_forget();
    somebody_dies(WHOLE_KEEPER, W_EXITCODE(0, 0));
    assert_did("looks whether it is stopped", "waits");
}

static void what_a_deaf_runtime_has_to_hear_waits_for_room(void **state)
{
    (void)state;
    starts();
    whole_supervisor.deaf = true;
    signal_comes(SIGTERM);
    assert_did("allows a silence of 10", "waits for room");
    whole_supervisor.no_keeper = true;
    runtime_starts_child(7);
    assert_did("feels a beat", "waits for room");
    whole_supervisor.deaf = false;
    supervisor_wakes();
    assert_did("runtime hears stop 15",
               "runtime hears failed 7 11 run the child: fork a keeper: no more processes are "
               "allowed (ulimit -u, TasksMax, pids.max)",
               "waits");
}

static void a_stop_gives_a_runtime_that_leads_nothing_five_times_the_usual_silence(void **state)
{
    (void)state;
    starts();
    signal_comes(SIGTERM);
    assert_did("allows a silence of 10", "runtime hears stop 15", "waits");
    signal_comes(SIGINT);
    assert_did("runtime hears stop 2", "waits");
    runtime_says((struct wire_message){.type = WIRE_ARM});
    assert_did("feels a beat", "allows a silence of 2", "waits");
    runtime_says((struct wire_message){.type = WIRE_DISARM});
    assert_did("feels a beat", "allows a silence of 10", "waits");
}

static void a_second_interrupt_kills_the_runtime(void **state)
{
    (void)state;
    whole_supervisor_starts_armed();
    signal_comes(SIGINT);
    notes_forget();
    time_passes(1 * S);
    signal_comes(SIGINT);
    assert_did("waits", "sends 9 to 200",
               "logs SIGINT again: killed the runtime and its children at once; `lost` may not "
               "have run, and leases may not have been given back",
               "waits");
    somebody_dies(WHOLE_RUNTIME, W_EXITCODE(0, SIGKILL));
    assert_did("looks whether it is stopped", "kills orphans, all but 0", "ends with 130");
}

static void signals_that_others_send_change_nothing(void **state)
{
    (void)state;
    starts();
    signal_comes(SIGUSR1);
    assert_did("waits");
    signal_comes(SIGHUP);
    assert_did("waits");
    signal_comes(SIGPIPE);
    assert_did("waits");
}

static void the_watchdog_says_when_to_look_again(void **state)
{
    (void)state;
    starts();
    whole_supervisor.silence_ns = 1002 * S;
    supervisor_wakes();
    assert_did("waits 2000 ms");
    time_passes(1 * S + 1);
    assert_did("waits 1000 ms");
    time_passes(5 * S); /* it was held up itself */
    assert_did("waits 0 ms");
}

static void nothing_is_read_while_there_is_no_room_to_note_a_failure(void **state)
{
    (void)state;
    starts();
    whole_supervisor.full = true;
    runtime_says((struct wire_message){.type = WIRE_HEARTBEAT});
    assert_did("waits");
    whole_supervisor.full = false;
    supervisor_wakes();
    assert_did("feels a beat", "waits");
}

static void a_will_is_taken(void **state)
{
    (void)state;
    starts();
    runtime_says((struct wire_message){.type = WIRE_WILL, .id = 3});
    assert_did("feels a beat", "takes will 3", "waits");
}

static void a_runtime_sets_how_its_supervisor_logs(void **state)
{
    (void)state;
    starts();
    runtime_says((struct wire_message){.type = WIRE_LOG, .log_format = 2, .log_level = 1});
    assert_did("feels a beat", "logs in the format 2", "logs from level 1 on", "waits");
}

static void the_loss_of_the_terminal_is_a_stop(void **state)
{
    (void)state;
    whole_supervisor.terminal = true;
    starts();
    terminal_hangs_up();
    assert_did("allows a silence of 10", "runtime hears stop 1", "waits");
    supervisor_wakes();
    assert_did("waits");
    signal_comes(SIGHUP);
    assert_did("runtime hears stop 1", "waits");
}

static void the_loss_of_the_terminal_is_none_where_it_is_to_go_on(void **state)
{
    (void)state;
    whole_supervisor.terminal = true;
    starts();
    runtime_says((struct wire_message){.type = WIRE_KEEP});
    assert_did("feels a beat", "waits");
    terminal_hangs_up();
    assert_did("waits");
    signal_comes(SIGHUP);
    assert_did("waits");
}

static void a_look_at_the_runtime_is_not_put_off_by_orphans(void **state)
{
    (void)state;
    starts();
    runtime_starts_child(7);
    whole_supervisor.orphans = 1;
    somebody_dies(WHOLE_KEEPER, W_EXITCODE(0, SIGKILL));
    notes_forget();
    whole_supervisor.silence_ns = 1000 * S + 3 * MS;
    time_passes(2 * MS);
    assert_did("kills orphans, all but 200", "waits 1 ms");
}

static void a_supervisor_without_what_it_needs_says_so_and_ends(void **state)
{
    (void)state;
    whole_supervisor.no_signals = true;
    errno = EMFILE;
    whole_supervisor_starts();
    assert_did("logs set up the supervisor: make a signalfd: Too many open files (ulimit -n, "
               "LimitNOFILE=)",
               "ends with 1");
}

static void a_supervisor_without_null_says_so_and_ends(void **state)
{
    (void)state;
    whole_supervisor.no_null = true;
    errno = ENOENT;
    whole_supervisor_starts();
    assert_did("logs set up the supervisor: open /dev/null: No such file or directory",
               "ends with 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(a_runtime_is_greeted_and_may_be_silent_until_it_is_armed),
        WHOLE_TEST(a_runtime_that_is_armed_may_be_silent_for_as_long_as_it_says),
        WHOLE_TEST(a_heartbeat_says_until_when_there_is_nothing_to_do),
        WHOLE_TEST(an_answer_is_no_beat),
        WHOLE_TEST(a_runtime_has_its_title_shown_and_a_keeper_ready),
        WHOLE_TEST(a_keeper_that_is_late_is_killed),
        WHOLE_TEST(a_keeper_that_cannot_be_forked_is_told_of_at_once),
        WHOLE_TEST(a_keeper_that_died_is_told_of_when_its_tree_is_gone),
        WHOLE_TEST(a_keeper_that_ended_in_order_leaves_nothing_to_clean),
        WHOLE_TEST(what_a_deaf_runtime_has_to_hear_waits_for_room),
        WHOLE_TEST(a_stop_gives_a_runtime_that_leads_nothing_five_times_the_usual_silence),
        WHOLE_TEST(a_second_interrupt_kills_the_runtime),
        WHOLE_TEST(signals_that_others_send_change_nothing),
        WHOLE_TEST(the_watchdog_says_when_to_look_again),
        WHOLE_TEST(nothing_is_read_while_there_is_no_room_to_note_a_failure),
        WHOLE_TEST(a_will_is_taken),
        WHOLE_TEST(a_runtime_sets_how_its_supervisor_logs),
        WHOLE_TEST(the_loss_of_the_terminal_is_a_stop),
        WHOLE_TEST(the_loss_of_the_terminal_is_none_where_it_is_to_go_on),
        WHOLE_TEST(a_look_at_the_runtime_is_not_put_off_by_orphans),
        WHOLE_TEST(a_supervisor_without_what_it_needs_says_so_and_ends),
        WHOLE_TEST(a_supervisor_without_null_says_so_and_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

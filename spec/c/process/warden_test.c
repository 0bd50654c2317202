/* What a warden does, call by call; how it ends real processes is in the other tests of this
 * folder. */
#include "process/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../../support/whole_warden.h"
#include "descriptors.h"
#include "process/signals.h"

#include <setjmp.h>

#include <cmocka.h>

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void a_child_runs(void)
{
    whole_warden_starts();
    notes_forget();
}

/* --- its start */

/* SIGKILL with its keeper at first; then SIGNAL_END, with which it can kill the tree before. */
static void is_bound_to_its_keeper_before_there_is_a_child(void **state)
{
    (void)state;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "is crown-warden a", "starts app", OUTLIVES_ITS_KEEPER, SAYS_SO,
               WATCHES);
    assert_int_equal(whole_process.kept[0], whole_warden.line);
    assert_int_equal(whole_warden.note.pid, WHOLE_WARDEN);
    warden_wakes();
    assert_did_nothing();
}

static void keeps_a_lock_open_and_gives_streams_away(void **state)
{
    (void)state;
    with_streams_and_a_lock();
    whole_warden_starts();
    assert_did("is forked, which is noted", "keeps 4 descriptors", "is on time", IS_BOUND,
               "is crown-warden a", "starts app with what it was given", OUTLIVES_ITS_KEEPER,
               SAYS_SO, WATCHES);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(whole_process.kept[i], whole_warden.given[i]);
    assert_int_equal(whole_process.kept[3], whole_warden.line);
    assert_false(is_open(whole_warden.given[0]));
    assert_false(is_open(whole_warden.given[1]));
    assert_true(is_open(whole_warden.given[2]));
}

static void leaves_the_terminals_group(void **state)
{
    (void)state;
    whole_warden.spec.terminal = true;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "is crown-warden a", "starts app", OUTLIVES_ITS_KEEPER, SAYS_SO,
               "moves 0 to the group of nobody", WATCHES);
}

static void starts_nothing_where_its_keeper_has_died_meanwhile(void **state)
{
    (void)state;
    whole_process.parent = 1;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "ends with 0");
}

static void ends_its_child_where_its_keeper_died_as_it_started(void **state)
{
    (void)state;
    whole_warden.keeper_dies = true;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "is crown-warden a", "starts app", OUTLIVES_ITS_KEEPER,
               ENDS_ITS_TREE);
}

static void starts_nothing_that_it_could_not_end(void **state)
{
    (void)state;
    whole_process.refused_option = PR_SET_PDEATHSIG;
    whole_warden_starts();
    assert_did(IS_FORKED, "is told of its parent's death by 9", "ends with 0");
    whole_process.refused_option = PR_SET_CHILD_SUBREAPER;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "ends with 0");
}

static void ends_a_child_that_might_outlive_its_keeper(void **state)
{
    (void)state;
    whole_process.refused_option = PR_SET_PDEATHSIG;
    whole_process.refused_value = SIGNAL_END;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "is crown-warden a", "starts app", OUTLIVES_ITS_KEEPER,
               ENDS_ITS_TREE);
}

static void says_what_it_lacks(void **state)
{
    (void)state;
    whole_warden.no_signals = true;
    whole_warden_starts();
    assert_did(IS_FORKED,
               "keeper hears start_failed error=1 (run a child: make a signalfd: Too many open "
               "files (ulimit -n, LimitNOFILE=))",
               "ends with 0");
    whole_warden.no_signals = false;
    whole_process.no_deadman = true;
    whole_warden_starts();
    assert_did(IS_FORKED, "keeper hears start_failed error=1 (no more timers)", "ends with 0");
}

static void says_why_its_child_could_not_start(void **state)
{
    (void)state;
    whole_warden.start_error = ENOENT;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "is crown-warden a", "starts app",
               "keeper hears start_failed error=2 (run app: No such file or directory)",
               "ends with 0");
}

static void says_as_much_of_it_as_fits(void **state)
{
    char text[WIRE_TEXT + 1], all[2 * WIRE_TEXT];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    whole_warden.start_error = ENOENT;
    whole_warden.start_text = text;
    whole_warden_starts();
    (void)snprintf(all, sizeof(all), "keeper hears start_failed error=2 (run app: %.*s)",
                   (int)(WIRE_TEXT - 1 - strlen("run app: ")), text);
    assert_did(IS_FORKED, IS_BOUND, "is crown-warden a", "starts app", all, "ends with 0");
}

/* It cannot wait until it sees the end of the line: nobody would know of the child until then. */
static void ends_a_child_of_which_it_could_tell_nobody(void **state)
{
    (void)state;
    whole_warden.keeper_leaves = true;
    whole_warden_starts();
    assert_did(IS_FORKED, IS_BOUND, "is crown-warden a", "starts app", OUTLIVES_ITS_KEEPER,
               ENDS_ITS_TREE);
}

/* --- in a namespace: the kernel ends all that is in it with the first process */

static void in_a_namespace_has_no_timer_and_no_parent(void **state)
{
    (void)state;
    whole_warden.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_process.parent = 0;
    whole_process.no_deadman = true;
    whole_warden_starts();
    assert_did("is forked into a namespace, which is noted", "keeps 1 descriptors", "is on time",
               "is in its namespace as 1000:100", IS_BOUND, "is crown-warden a", "starts app",
               SAYS_SO, WATCHES);
    keeper_says((struct wire_message){.type = WIRE_SET_DEADLINE});
    signal_comes(SIGNAL_END);
    assert_did_nothing();
    keeper_hangs_up();
    assert_did("ends with 0");
}

/* The kernel closes its descriptors before it ends the others: too late for a lock. */
static void in_a_namespace_ends_a_tree_that_holds_a_lock_itself(void **state)
{
    (void)state;
    with_streams_and_a_lock();
    whole_warden.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_process.parent = 0;
    whole_warden_starts();
    assert_did("is forked into a namespace, which is noted", "keeps 4 descriptors", "is on time",
               "is in its namespace as 1000:100", IS_BOUND, "is crown-warden a",
               "starts app with what it was given", "is told of its parent's death by 18", SAYS_SO,
               WATCHES);
    keeper_hangs_up();
    assert_did(ENDS_ITS_TREE);
}

static void outside_its_namespace_starts_nothing(void **state)
{
    (void)state;
    whole_warden.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_warden.no_namespace = true;
    whole_warden_starts();
    assert_did("is forked into a namespace, which is noted", "keeps 1 descriptors", "is on time",
               "keeper hears start_failed error=1 (no namespaces)", "ends with 0");
}

/* --- its child's end */

static void tells_of_its_childs_end_and_ends_what_is_left(void **state)
{
    (void)state;
    a_child_runs();
    dies(77, 0);
    signal_comes(SIGCHLD);
    assert_did("reaps 77, after 0"); /* a daemon that came to it */
    dies(78, 0);
    dies(WHOLE_CHILD, W_EXITCODE(3, 0));
    dies(79, 0);
    signal_comes(SIGCHLD);
    assert_did("reaps 78, after 0", "reaps child, after 1",
               "keeper hears exited pid=400 status=768", ENDS_ITS_TREE);
}

static void ends_what_is_left_though_nobody_hears_of_it(void **state)
{
    (void)state;
    a_child_runs();
    whole_warden.keeper_leaves = true;
    dies(WHOLE_CHILD, 0);
    signal_comes(SIGCHLD);
    assert_did("reaps child, after 0", ENDS_ITS_TREE);
}

/* No shell of the user's would continue it. Who sends SIGSTOP means it. */
static void continues_a_child_that_its_terminal_stopped(void **state)
{
    (void)state;
    whole_warden.spec.terminal = true;
    a_child_runs();
    dies(WHOLE_CHILD, W_STOPCODE(SIGTSTP));
    signal_comes(SIGCHLD);
    assert_did("reaps child, dead or stopped, after 0", "sends 18 to the group of child");
    dies(WHOLE_CHILD, W_STOPCODE(SIGSTOP));
    dies(77, 0);
    signal_comes(SIGCHLD);
    assert_did("reaps child, dead or stopped, after 0", "reaps 77, dead or stopped, after 1");
}

static void does_not_wait_for_a_debugger_that_holds_a_dead_child(void **state)
{
    (void)state;
    a_child_runs();
    warden_wakes();
    signal_comes(SIGCHLD);
    whole_warden.child_is_dead = true;
    whole_warden.status = W_EXITCODE(5, 0);
    child_is_seen_to_be_dead();
    assert_did("keeper hears exited pid=400 status=1280", ENDS_ITS_TREE);
}

static void tells_of_a_held_child_that_ended_well(void **state)
{
    (void)state;
    a_child_runs();
    whole_warden.child_is_dead = true;
    child_is_seen_to_be_dead();
    assert_did("keeper hears exited pid=400", ENDS_ITS_TREE);
}

static void takes_a_dead_child_of_which_proc_says_nothing_for_killed(void **state)
{
    (void)state;
    a_child_runs();
    whole_warden.child_is_dead = true;
    whole_warden.status = -1;
    child_is_seen_to_be_dead();
    assert_did("keeper hears exited pid=400 status=9", ENDS_ITS_TREE);
}

static void takes_the_kernels_word_for_its_childs_end_where_it_has_one(void **state)
{
    (void)state;
    a_child_runs();
    whole_warden.child_is_dead = true;
    whole_warden.status = W_EXITCODE(5, 0);
    dies(WHOLE_CHILD, 0);
    child_is_seen_to_be_dead();
    assert_did("reaps child, after 0", "keeper hears exited pid=400", ENDS_ITS_TREE);
}

/* Its first thread is dead, and others go on. */
static void goes_on_while_a_thread_of_its_child_does(void **state)
{
    (void)state;
    a_child_runs();
    child_is_seen_to_be_dead();
    assert_did_nothing();
    warden_wakes();
    assert_did_nothing();
    dies(WHOLE_CHILD, 0);
    signal_comes(SIGCHLD);
    assert_did("reaps child, after 0", "keeper hears exited pid=400", ENDS_ITS_TREE);
}

/* --- its keeper */

static void does_what_its_keeper_says(void **state)
{
    (void)state;
    a_child_runs();
    whole_warden.note.deadline_ns = START_NS + 30 * NS_PER_S;
    keeper_says((struct wire_message){.type = WIRE_SET_DEADLINE});
    assert_did("dies at 30");
    keeper_says((struct wire_message){.type = WIRE_SIGNAL, .signal = SIGHUP});
    assert_did("sends 1 to child");
    keeper_says((struct wire_message){.type = WIRE_SIGNAL, .signal = SIGTERM, .status = 1});
    assert_did("sends 15 to the group of child");
    keeper_says((struct wire_message){.type = WIRE_START_CHILD});
    assert_did_nothing();
}

static void ends_its_tree_with_its_keeper(void **state)
{
    (void)state;
    a_child_runs();
    signal_comes(SIGNAL_END); /* of somebody else's */
    assert_did_nothing();
    whole_process.parent = 1;
    signal_comes(SIGCHLD);
    assert_did_nothing();
    signal_comes(SIGNAL_END);
    assert_did(ENDS_ITS_TREE);
    whole_process.parent = WHOLE_KEEPER;
    a_child_runs();
    keeper_hangs_up();
    assert_did(ENDS_ITS_TREE);
}

static void ends_its_tree_where_it_cannot_wait(void **state)
{
    (void)state;
    a_child_runs();
    whole_process.poll_error = EINTR;
    warden_wakes();
    assert_did_nothing();
    whole_process.poll_error = ENOMEM;
    warden_wakes();
    assert_did(ENDS_ITS_TREE);
}

static void tells_whom_it_cannot_kill(void **state)
{
    (void)state;
    whole_process.refuses = 77;
    a_child_runs();
    dies(WHOLE_CHILD, 0);
    signal_comes(SIGCHLD);
    assert_did("reaps child, after 0", "keeper hears exited pid=400",
               "kills the tree to its end, nobody last", "keeper hears unkillable pid=77 error=1",
               "ends with 0");
    a_child_runs();
    keeper_hangs_up();
    assert_did("kills the tree to its end, nobody last",
               "warns: process 77 of a tree cannot be killed (Operation not permitted): it must be "
               "ended by hand",
               "ends with 0");
}

/* --- as its keeper sees it */

static void is_forked_with_a_line_to_its_keeper(void **state)
{
    struct crown_error err;
    int end = -1;
    (void)state;
    const unsigned before = descriptors_open();
    assert_int_equal(whole_warden_is_forked(&whole_warden.spec, &end, &err), WHOLE_WARDEN);
    assert_did("is forked, which is noted");
    assert_int_equal(end, whole_warden.keeper_end);
    assert_int_equal(descriptors_open(), before + 1);
    (void)close(end);
    whole_warden.line = -1;
}

static void that_cannot_be_forked_leaves_nothing_open(void **state)
{
    struct crown_error err;
    int end = -1;
    (void)state;
    const unsigned before = descriptors_open();
    whole_warden.fork_error = EAGAIN;
    assert_int_equal(whole_warden_is_forked(&whole_warden.spec, &end, &err), -1);
    assert_string_equal(err.message, "run a child: fork its warden: no more processes are allowed "
                                     "(ulimit -u, TasksMax, pids.max)");
    assert_int_equal(whole_warden_is_forked(NULL, &end, &err), -1);
    assert_string_equal(err.message, "run a child: fork its warden: no more processes are allowed "
                                     "(ulimit -u, TasksMax, pids.max)");
    whole_warden.spec.isolation = CHILD_ISOLATION_PIDNS;
    whole_warden.fork_error = EPERM;
    assert_int_equal(whole_warden_is_forked(&whole_warden.spec, &end, &err), -1);
    assert_string_equal(
        err.message,
        "isolation 'pidns' is not to be had here: make a PID namespace: Operation not permitted");
    assert_did("is forked, which is noted", "is forked, which is noted",
               "is forked into a namespace, which is noted");
    assert_int_equal(end, -1);
    assert_int_equal(descriptors_open(), before);
    whole_warden.line = -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WARDEN_TEST(is_bound_to_its_keeper_before_there_is_a_child),
        WARDEN_TEST(keeps_a_lock_open_and_gives_streams_away),
        WARDEN_TEST(leaves_the_terminals_group),
        WARDEN_TEST(starts_nothing_where_its_keeper_has_died_meanwhile),
        WARDEN_TEST(ends_its_child_where_its_keeper_died_as_it_started),
        WARDEN_TEST(starts_nothing_that_it_could_not_end),
        WARDEN_TEST(ends_a_child_that_might_outlive_its_keeper),
        WARDEN_TEST(says_what_it_lacks),
        WARDEN_TEST(says_why_its_child_could_not_start),
        WARDEN_TEST(says_as_much_of_it_as_fits),
        WARDEN_TEST(ends_a_child_of_which_it_could_tell_nobody),
        WARDEN_TEST(in_a_namespace_has_no_timer_and_no_parent),
        WARDEN_TEST(in_a_namespace_ends_a_tree_that_holds_a_lock_itself),
        WARDEN_TEST(outside_its_namespace_starts_nothing),
        WARDEN_TEST(tells_of_its_childs_end_and_ends_what_is_left),
        WARDEN_TEST(ends_what_is_left_though_nobody_hears_of_it),
        WARDEN_TEST(continues_a_child_that_its_terminal_stopped),
        WARDEN_TEST(does_not_wait_for_a_debugger_that_holds_a_dead_child),
        WARDEN_TEST(tells_of_a_held_child_that_ended_well),
        WARDEN_TEST(takes_a_dead_child_of_which_proc_says_nothing_for_killed),
        WARDEN_TEST(takes_the_kernels_word_for_its_childs_end_where_it_has_one),
        WARDEN_TEST(goes_on_while_a_thread_of_its_child_does),
        WARDEN_TEST(does_what_its_keeper_says),
        WARDEN_TEST(ends_its_tree_with_its_keeper),
        WARDEN_TEST(ends_its_tree_where_it_cannot_wait),
        WARDEN_TEST(tells_whom_it_cannot_kill),
        WARDEN_TEST(is_forked_with_a_line_to_its_keeper),
        WARDEN_TEST(that_cannot_be_forked_leaves_nothing_open),
    };
    return cmocka_run_group_tests_name("a warden", tests, NULL, NULL);
}

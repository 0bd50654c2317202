/* What a supervisor owes its runtime and its user, with a full line and a log that nobody reads. */
#include "process/supervisor.h"

#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define PROCESSES 40

static void start_many(void)
{
    stage.board->unprivileged = stage.board->later = true;
    stage.board->stay = stage.board->quiet = true; /* nothing but room on the line is news */
    stage.board->processes = PROCESSES;
    stage.board->children = STAGE_MANY;
    stage_start();
    stage_order(ORDER_START, NULL); /* nothing is read, and the line is full of failures */
}

static bool all_are_told(void)
{
    return stage.board->started + stage.board->unstarted == STAGE_MANY;
}

static void every_keeper_that_could_not_be_forked_is_told_of(void **state)
{
    (void)state;
    start_many();
    stage_order(ORDER_READ, NULL);
    stage_until(all_are_told);
    assert_true(stage.board->unstarted > STAGE_MANY - PROCESSES);
    const struct wire_message *failed = stage_message(WIRE_KEEPER_FAILED);
    assert_int_equal(failed->error, EAGAIN);
    assert_string_equal(failed->text, "run the child: fork a keeper: no more processes are allowed "
                                      "(ulimit -u, TasksMax, pids.max)");
}

static bool supervisor_waits(void)
{
    return stage_state(stage.supervisor) == 'S';
}

static bool was_told_to_stop(void)
{
    return stage.board->stopped;
}

static void a_stop_reaches_a_runtime_whose_line_is_full(void **state)
{
    (void)state;
    start_many();
    stage_until(supervisor_waits);
    stage_kill(stage.supervisor, SIGTERM);
    stage_until_ticking(0);
    stage_until(supervisor_waits);
    stage_order(ORDER_READ, NULL);
    stage_until(was_told_to_stop);
    stage_until(all_are_told);
}

#define DESCRIPTORS 64
#define CHILDREN 30

/* @return how many keepers have failed so far: died, with 0, or could not be forked. */
static int failed_with(int error)
{
    int count = 0;
    for (int i = 0; i < stage.board->logged; i++)
        count +=
            stage.board->log[i].type == WIRE_KEEPER_FAILED && stage.board->log[i].error == error;
    return count;
}

static bool each_has_started_or_failed(void)
{
    return stage.board->started + stage.board->unstarted == CHILDREN;
}

static bool one_died(void)
{
    return failed_with(0) == 1;
}

/* It has to look for what is left of a tree, however many locks it holds. */
static void a_supervisor_keeps_descriptors_for_itself(void **state)
{
    (void)state;
    (void)snprintf(stage.board->lock, sizeof(stage.board->lock), "%s/lock", stage.folder);
    stage.board->descriptors = DESCRIPTORS;
    stage.board->children = CHILDREN;
    stage_start();
    stage_order(ORDER_READ, NULL);
    stage_until(each_has_started_or_failed);
    assert_int_equal(failed_with(EMFILE), stage.board->unstarted);
    assert_true(stage.board->unstarted > 0 && stage.board->started > 0);
    stage_kill(stage_pid("crown-keeper"), SIGKILL);
    stage_until(one_died);
    assert_int_equal(unlink(stage.board->lock), 0);
}

/* A log whose reader has gone to sleep. */

static int saved_stderr;
static int stuck_pipe;

static void block_stderr(void)
{
    char page[4096] = {0};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(ends[1], page, sizeof(page)) > 0)
        continue;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0); /* now a write would wait for ever */
    (void)fflush(stderr);
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 50);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(ends[1]), 0);
    stuck_pipe = ends[0];
}

static void restore_stderr(void)
{
    assert_int_equal(dup2(saved_stderr, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(saved_stderr), 0);
}

static void a_supervisor_that_cannot_say_it_kills_all_the_same(void **state)
{
    (void)state;
    stage.board->arm = true;
    stage.board->silence_ns = 400 * NS_PER_MS;
    block_stderr();
    stage_start();
    restore_stderr();
    stage_until_ticking(0);
    stage_kill(stage_pid("crown-runtime"), SIGSTOP);
    stage_until_runs(2);
    stage_kill(stage.supervisor, SIGTERM);
    stage_wait_supervisor();
    assert_int_equal(WEXITSTATUS(stage.status), 5);
    assert_int_equal(close(stuck_pipe), 0);
}

int main(int argc, char **argv)
{
    stage_main(argc, argv);
    const struct CMUnitTest tests[] = {
        STAGE_TEST(every_keeper_that_could_not_be_forked_is_told_of),
        STAGE_TEST(a_stop_reaches_a_runtime_whose_line_is_full),
        STAGE_TEST(a_supervisor_keeps_descriptors_for_itself),
        STAGE_TEST(a_supervisor_that_cannot_say_it_kills_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

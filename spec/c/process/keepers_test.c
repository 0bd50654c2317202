/* The table of keepers: who lives, and who failed and must be told of. */
#include "process/keepers.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pages.h"

#include "process/keeper.h"
#include "process/launch.h"

static struct keepers keepers;

/* What was told, and how much more may be. */
static struct {
    unsigned room, count;
    uint64_t id[8];
    int error[8];
} told;

static bool tell(void *context, uint64_t id, int error)
{
    assert_ptr_equal(context, &told);
    if (told.count == told.room)
        return false;
    told.id[told.count] = id;
    told.error[told.count++] = error;
    return true;
}

static void tell_of(bool gone, unsigned room)
{
    told.room = told.count + room;
    keepers_tell_failed(&keepers, gone, tell, &told);
}

static int open_table(void **state)
{
    (void)state;
    told.room = told.count = 0;
    return keepers_init(&keepers);
}

static void add(pid_t pid, uint64_t id, const int *holds, unsigned count)
{
    keepers_add(&keepers, pid);
    keepers_assign(&keepers, pid, id, holds, count);
}

static void who_ends_well_is_off_the_table(void **state)
{
    (void)state;
    add(101, 1, NULL, 0);
    add(102, 2, NULL, 0);
    assert_int_equal(keepers.count, 2);
    assert_false(keepers_ended(&keepers, 101, 0)); /* it said GONE itself */
    assert_int_equal(keepers.count, 1);
    assert_false(keepers_has(&keepers, 101));
    assert_true(keepers_has(&keepers, 102));
    assert_false(keepers_owed(&keepers, true));
    tell_of(true, 8);
    assert_int_equal(told.count, 0);
}

static void who_died_is_told_of_when_what_it_left_is_gone(void **state)
{
    (void)state;
    add(101, 1, NULL, 0);
    add(102, 2, NULL, 0);
    assert_true(keepers_ended(&keepers, 101, SIGKILL));
    assert_false(keepers_ended(&keepers, 999, SIGKILL));
    assert_int_equal(keepers.count, 1);
    assert_false(keepers_owed(&keepers, false));
    tell_of(false, 8);
    assert_int_equal(told.count, 0);
    assert_true(keepers_owed(&keepers, true));
    tell_of(true, 8);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.id[0], 1);
    assert_int_equal(told.error[0], 0);
    assert_false(keepers_owed(&keepers, true));
    assert_true(keepers_has(&keepers, 102));
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Copies of what holds a lock. @return the last one's number; the others' are just below it. */
static int copies(unsigned count)
{
    int fd = -1;
    for (unsigned i = 0; i < count; i++)
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100 + (int)i);
    assert_int_equal(fd, 100 + (int)count - 1);
    return fd;
}

static void a_lock_is_held_until_the_tree_is_gone(void **state)
{
    (void)state;
    const int holds[] = {copies(3) - 2, 101, 102};
    add(101, 1, holds, 2);
    add(102, 2, holds + 2, 1);
    assert_false(keepers_ended(&keepers, 102, 0));
    assert_false(is_open(102)); /* it said GONE itself */
    assert_true(keepers_ended(&keepers, 101, SIGKILL));
    tell_of(false, 8);
    tell_of(true, 0);
    assert_true(is_open(100) && is_open(101));
    tell_of(true, 8);
    assert_false(is_open(100) || is_open(101));
}

static struct warden_note *add_with_warden(pid_t keeper, pid_t warden)
{
    struct warden_note *note = keepers_next_warden(&keepers);
    assert_int_equal(note->pid, 0); /* whoever was there before */
    note->pid = warden;
    add(keeper, (uint64_t)keeper, NULL, 0);
    return note;
}

static void a_warden_is_known_for_as_long_as_its_keeper(void **state)
{
    (void)state;
    struct warden_note *notes[4];
    for (pid_t i = 0; i < 4; i++)
        notes[i] = add_with_warden(101 + i, 201 + i);
    assert_false(keepers_ended(&keepers, 102, 0));
    assert_false(keepers_ended(&keepers, 101, 0));
    assert_false(keepers_has_warden(&keepers, 201) || keepers_has_warden(&keepers, 202));
    assert_true(keepers_has_warden(&keepers, 203) && keepers_has_warden(&keepers, 204));
    /* Whose keepers have died, others came and went: each has its note alone. */
    assert_true(keepers_ended(&keepers, 104, SIGKILL));
    for (pid_t i = 0; i < 3; i++)
        (void)add_with_warden(111 + i, 211 + i);
    assert_int_equal(notes[2]->pid, 203);
    assert_int_equal(notes[3]->pid, 204);
    tell_of(true, 8);
    assert_false(keepers_has_warden(&keepers, 204));
    assert_true(keepers_has_warden(&keepers, 203));
    for (pid_t i = 0; i < 3; i++)
        assert_true(keepers_has_warden(&keepers, 211 + i));
}

/* A keeper whose exit code is not 0 could not say GONE. */
static void who_ends_badly_is_told_of(void **state)
{
    (void)state;
    add(101, 1, NULL, 0);
    assert_true(keepers_ended(&keepers, 101, 1 << 8));
    tell_of(true, 8);
    assert_int_equal(told.id[0], 1);
}

/* The runtime may be alive, and its line full. */
static void who_could_not_say_that_its_tree_is_gone_leaves_nothing_to_look_for(void **state)
{
    (void)state;
    const int holds[] = {copies(1)};
    add(101, 1, holds, 1);
    add(102, 2, NULL, 0);
    assert_false(keepers_ended(&keepers, 101, KEEPER_UNTOLD << 8));
    assert_true(keepers_owed(&keepers, false));
    assert_true(is_open(100));
    tell_of(false, 8);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.id[0], 1);
    assert_int_equal(told.error[0], 0);
    assert_false(is_open(100));
    assert_false(keepers_owed(&keepers, true));
    assert_true(keepers_ended(&keepers, 102, KEEPER_UNTOLD)); /* a signal of that number */
}

static void who_is_left_is_found_when_others_have_gone(void **state)
{
    (void)state;
    for (pid_t pid = 101; pid <= 200; pid++)
        add(pid, (uint64_t)pid, NULL, 0);
    for (pid_t pid = 101; pid <= 200; pid += 3)
        assert_false(keepers_ended(&keepers, pid, 0));
    for (pid_t pid = 101; pid <= 200; pid++)
        assert_int_equal(keepers_has(&keepers, pid), (pid - 101) % 3 != 0);
    assert_true(keepers_ended(&keepers, 199, SIGKILL));
    assert_false(keepers_has(&keepers, 199));
    tell_of(true, 8);
    assert_int_equal(told.id[0], 199);
}

static void who_was_never_forked_is_told_of_at_once(void **state)
{
    (void)state;
    keepers_add_failed(&keepers, 7, EAGAIN);
    assert_int_equal(keepers.count, 0);
    assert_true(keepers_owed(&keepers, false));
    tell_of(false, 8);
    assert_int_equal(told.id[0], 7);
    assert_int_equal(told.error[0], EAGAIN);
    assert_false(keepers_owed(&keepers, true));
}

static void what_cannot_be_told_now_is_told_later_and_once(void **state)
{
    (void)state;
    uint64_t sum = 0;
    add(101, 100, NULL, 0);
    for (uint64_t id = 1; id <= 4; id++)
        keepers_add_failed(&keepers, id, EAGAIN);
    tell_of(false, 1);
    assert_int_equal(told.count, 1);
    assert_true(keepers_owed(&keepers, false));
    tell_of(false, 2);
    tell_of(false, 8);
    assert_int_equal(told.count, 4);
    for (unsigned i = 0; i < told.count; i++)
        sum += told.id[i];
    assert_int_equal(sum, 1 + 2 + 3 + 4);
    assert_true(keepers_has(&keepers, 101));
    assert_int_equal(keepers.used, 1);
}

static void there_is_room_for_the_news_of_failures_when_there_is_none_for_keepers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KEEPERS_MAX; i++) {
        assert_true(keepers_room(&keepers));
        add((pid_t)i + 2, i, NULL, 0);
    }
    assert_false(keepers_room(&keepers));
    for (unsigned i = 0; i < KEEPERS_ROOM - KEEPERS_MAX; i++) {
        assert_false(keepers_full(&keepers));
        keepers_add_failed(&keepers, KEEPERS_MAX + i, EAGAIN);
    }
    assert_true(keepers_full(&keepers));
    told.room = 0;
    assert_true(keepers_owed(&keepers, false));
    assert_false(keepers_ended(&keepers, 2, 0));
    assert_true(keepers_room(&keepers));
}

static void one_more_than_there_may_be_names_that_limit_and_no_other(void **state)
{
    (void)state;
    struct launch_spare spare = {0};
    const struct wire_message message = {.type = WIRE_START_KEEPER, .id = KEEPERS_MAX};
    const int fds[] = {-1, -1};
    for (unsigned i = 0; i < KEEPERS_MAX; i++)
        add((pid_t)i + 2, i, NULL, 0);
    assert_int_equal(launch_keeper(&keepers, &spare, &message, fds, 2), 2);
    tell_of(false, 1);
    assert_int_equal(told.id[0], KEEPERS_MAX);
    assert_string_equal(keepers_why(told.error[0]), "a runtime has 65536 of them at most");
}

static void a_keeper_has_the_notes_of_wardens_and_no_copy_of_the_table(void **state)
{
    (void)state;
    if (!pages_can_be_left_out())
        skip();
    assert_true(pages_has(keepers.entries));
    assert_true(pages_child_has(keepers.wardens));
    assert_false(pages_child_has(keepers.entries));
}

/* --- signals to real processes */

static pid_t fork_sleeper(void)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        (void)pause();
}

static bool lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void assert_ended_by(pid_t pid, int signal)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
}

/* The number of one that has died may be another's by now. */
static void a_signal_is_sent_to_those_that_live(void **state)
{
    (void)state;
    pid_t sleepers[4];
    for (unsigned i = 0; i < 4; i++) {
        sleepers[i] = fork_sleeper();
        add(sleepers[i], i + 1, NULL, 0);
    }
    assert_true(keepers_ended(&keepers, sleepers[0], SIGKILL)); /* so it is said */
    keepers_kill(&keepers, 3);
    assert_ended_by(sleepers[2], SIGKILL);
    assert_true(lives(sleepers[0]) && lives(sleepers[1]) && lives(sleepers[3]));
    keepers_kill(&keepers, 1); /* it has died */
    keepers_kill(&keepers, 9); /* there is none */
    assert_true(keepers_ended(&keepers, sleepers[2], SIGKILL));
    keepers_signal(&keepers, SIGUSR1);
    assert_ended_by(sleepers[1], SIGUSR1);
    assert_ended_by(sleepers[3], SIGUSR1);
    assert_true(lives(sleepers[0]));
    assert_int_equal(kill(sleepers[0], SIGKILL), 0);
    assert_ended_by(sleepers[0], SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_ends_well_is_off_the_table, open_table),
        cmocka_unit_test_setup(who_died_is_told_of_when_what_it_left_is_gone, open_table),
        cmocka_unit_test_setup(a_lock_is_held_until_the_tree_is_gone, open_table),
        cmocka_unit_test_setup(a_warden_is_known_for_as_long_as_its_keeper, open_table),
        cmocka_unit_test_setup(who_ends_badly_is_told_of, open_table),
        cmocka_unit_test_setup(who_could_not_say_that_its_tree_is_gone_leaves_nothing_to_look_for,
                               open_table),
        cmocka_unit_test_setup(who_is_left_is_found_when_others_have_gone, open_table),
        cmocka_unit_test_setup(who_was_never_forked_is_told_of_at_once, open_table),
        cmocka_unit_test_setup(what_cannot_be_told_now_is_told_later_and_once, open_table),
        cmocka_unit_test_setup(a_keeper_has_the_notes_of_wardens_and_no_copy_of_the_table,
                               open_table),
        cmocka_unit_test_setup(
            there_is_room_for_the_news_of_failures_when_there_is_none_for_keepers, open_table),
        cmocka_unit_test_setup(one_more_than_there_may_be_names_that_limit_and_no_other,
                               open_table),
        cmocka_unit_test_setup(a_signal_is_sent_to_those_that_live, open_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "process/orphans.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "denied.h"

#define NOT_HERE 77 /* the kernel takes no such filter */

#define MANY 1500u /* their pids fill more than the page that one read of /proc gives */

static struct keepers keepers;
static struct rounds_refused refused;
static pid_t pids[MANY];

static pid_t fork_sleeper(void)
{
    pid_t test = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != test)
        _exit(1);
    for (;;)
        (void)pause();
}

static int reap_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        if (pids[i] > 0)
            (void)kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    for (unsigned i = 0; i < MANY; i++)
        pids[i] = 0;
    return 0;
}

static void add_dead_keeper_of(pid_t warden)
{
    const pid_t keeper = 1; /* nobody's who could be an orphan */
    keepers_next_warden(&keepers)->pid = warden;
    keepers_add(&keepers, keeper);
    assert_true(keepers_ended(&keepers, keeper, SIGKILL));
}

static void assert_killed(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static void the_runtime_and_keepers_are_spared_and_all_others_killed(void **state)
{
    (void)state;
    assert_int_equal(keepers_init(&keepers), 0);
    for (unsigned i = 0; i < 3; i++)
        pids[i] = fork_sleeper();
    keepers_add(&keepers, pids[1]);
    assert_int_equal(orphans_kill(pids[0], &keepers, false, &refused), 1);
    assert_killed(pids[2]);
    pids[2] = 0;
    assert_int_equal(orphans_kill(pids[0], &keepers, false, &refused), 0);
}

static void an_orphan_behind_a_thousand_keepers_is_found(void **state)
{
    (void)state;
    assert_int_equal(keepers_init(&keepers), 0);
    for (unsigned i = 0; i < MANY; i++) {
        pids[i] = fork_sleeper();
        assert_true(pids[i] > 0);
        if (i < MANY - 1)
            keepers_add(&keepers, pids[i]);
    }
    assert_int_equal(orphans_kill(0, &keepers, false, &refused), 1);
    assert_killed(pids[MANY - 1]);
    pids[MANY - 1] = 0;
}

static void process_1_kills_wardens_but_no_strangers(void **state)
{
    (void)state;
    assert_int_equal(keepers_init(&keepers), 0);
    (void)unsetenv("CROWN_ELECTION");
    pids[0] = fork_sleeper();
    pids[1] = fork_sleeper();
    add_dead_keeper_of(pids[1]);
    assert_int_equal(orphans_kill(0, &keepers, true, &refused), 1);
    assert_killed(pids[1]);
    pids[1] = 0;
    assert_int_equal(orphans_kill(0, &keepers, true, &refused), 0);
    assert_int_equal(waitpid(pids[0], NULL, WNOHANG), 0);
}

static int release[2]; /* a pipe that a warden ends with */

static void play_warden(void)
{
    char byte;
    if (close(release[1]) < 0 || fork_sleeper() < 0 || kill(getpid(), SIGSTOP) < 0)
        _exit(1);
    while (read(release[0], &byte, 1) < 0)
        continue;
    _exit(0);
}

static void until_stopped(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
}

/* The locks of its tree may be its alone, and its child would die with it. */
static void a_warden_is_left_to_kill_its_tree_and_awakened_for_it(void **state)
{
    (void)state;
    int status = 0;
    assert_int_equal(keepers_init(&keepers), 0);
    assert_int_equal(pipe(release), 0);
    pids[0] = fork();
    if (pids[0] == 0)
        play_warden();
    until_stopped(pids[0]);
    add_dead_keeper_of(pids[0]);
    for (int round = 0; round < 3; round++)
        assert_int_equal(orphans_kill(0, &keepers, false, &refused), 1);
    assert_int_equal(close(release[1]), 0);
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    pids[0] = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(close(release[0]), 0);
}

static void whoever_calls_itself_a_warden_is_killed(void **state)
{
    (void)state;
    assert_int_equal(keepers_init(&keepers), 0);
    assert_int_equal(pipe(release), 0);
    pids[0] = fork();
    if (pids[0] == 0) {
        (void)prctl(PR_SET_NAME, "crown-warden");
        play_warden();
    }
    until_stopped(pids[0]);
    assert_int_equal(orphans_kill(0, &keepers, false, &refused), 1);
    assert_killed(pids[0]);
    pids[0] = 0;
    assert_int_equal(close(release[0]) | close(release[1]), 0);
}

/* What a process without rights has met, whose child has kept them. */
static _Atomic int *met; /* the child's pid */

static void meet_one_that_may_not_be_killed(void)
{
    struct rounds_refused who = {.pid = 0};
    pid_t child = fork();
    if (child == 0)
        for (;;)
            (void)pause();
    *met = child;
    if (keepers_init(&keepers) < 0 || setresuid(65534, 65534, 65534) < 0)
        _exit(9);
    if (orphans_kill(0, &keepers, false, &who) != 1)
        _exit(1); /* it counts as there */
    _exit(who.pid == child && who.error == EPERM ? 0 : 2);
}

static void who_may_not_be_killed_counts_and_is_named(void **state)
{
    (void)state;
    int status = 0;
    met = mmap(NULL, sizeof(*met), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(met != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0)
        meet_one_that_may_not_be_killed();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    pids[0] = *met; /* the kernel sends no death signal either: it is this test's to end */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(munmap((void *)met, sizeof(*met)), 0);
}

/* @return how many there may be; in a process of its own, which the kernel refuses to open files.
 */
static int found_where_opening_fails(int error)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(deny_call(SYS_openat, error) ? (int)orphans_kill(0, &keepers, false, &refused)
                                           : NOT_HERE);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Who cannot see them now has to look again; who never can must not look for ever. */
static void they_may_be_there_while_the_list_cannot_be_read(void **state)
{
    (void)state;
    static const struct {
        int error, found;
    } table[] = {{EMFILE, 1}, {ENFILE, 1}, {ENOMEM, 1}, {ENOENT, 0}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int found = found_where_opening_fails(table[i].error);
        if (found != NOT_HERE)
            assert_int_equal(found, table[i].found);
    }
}

/* Whoever wipes its environment is a stranger's to process 1, also right after one of ours. */
static void process_1_looks_at_each_by_itself(void **state)
{
    (void)state;
    pid_t ours = fork();
    if (ours == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        char *const argv[] = {"sleep", "1000", NULL}, *const envp[] = {"CROWN_ELECTION=x", NULL};
        (void)execve("/bin/sleep", argv, envp);
        _exit(1);
    }
    pids[0] = ours;
    pids[1] = fork_sleeper();
    int64_t until_ns = clock_boottime_ns() + 20 * NS_PER_S;
    while (orphans_kill(0, &keepers, true, &refused) == 0) /* until it has begun */
        assert_true(clock_boottime_ns() < until_ns);
    assert_killed(ours);
    pids[0] = 0;
    assert_int_equal(orphans_kill(0, &keepers, true, &refused), 0);
    assert_int_equal(waitpid(pids[1], NULL, WNOHANG), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_runtime_and_keepers_are_spared_and_all_others_killed,
                                  reap_all),
        cmocka_unit_test_teardown(an_orphan_behind_a_thousand_keepers_is_found, reap_all),
        cmocka_unit_test_teardown(who_may_not_be_killed_counts_and_is_named, reap_all),
        cmocka_unit_test_teardown(a_warden_is_left_to_kill_its_tree_and_awakened_for_it, reap_all),
        cmocka_unit_test_teardown(whoever_calls_itself_a_warden_is_killed, reap_all),
        cmocka_unit_test_teardown(process_1_kills_wardens_but_no_strangers, reap_all),
        cmocka_unit_test_teardown(process_1_looks_at_each_by_itself, reap_all),
        cmocka_unit_test_teardown(they_may_be_there_while_the_list_cannot_be_read, reap_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

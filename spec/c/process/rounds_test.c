/* Rounds of SIGKILL: all that is below a process, and nothing that only bears an old number. */
#include "process/rounds.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "patience.h"
#include "traced.h"

#define NOBODY 65534
#define DEAD_MANY 1500
#define LAST_PID "/proc/sys/kernel/ns_last_pid" /* the next process gets the number after it */

static int patience_ms(void)
{
    return (int)(patience_ns() / NS_PER_MS);
}

static int answers[2]; /* a byte from each that is asked whether it lives */

static void answer(int signal)
{
    (void)signal;
    if (write(answers[1], "", 1) != 1)
        _exit(1);
}

static void sleep_for_ever(void)
{
    for (;;)
        (void)pause();
}

/* Forks a process that forks one; both sleep. @return the first; `*below` is the second. */
static pid_t fork_pair(pid_t *below)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGUSR1, answer);
        pid_t child = fork();
        if (child == 0)
            sleep_for_ever();
        if (write(ends[1], &child, sizeof(child)) != (ssize_t)sizeof(child))
            _exit(1);
        sleep_for_ever();
    }
    assert_int_equal(read(ends[0], below, sizeof(*below)), sizeof(*below));
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
    return pid;
}

/* @return whether it ends soon. */
static bool ends(int pidfd)
{
    struct pollfd polled = {.fd = pidfd, .events = POLLIN};
    return poll(&polled, 1, patience_ms()) == 1;
}

/* @return whether it still does anything: one that was killed, and is not dead yet, does not. */
static bool lives(pid_t pid, int pidfd)
{
    char byte;
    struct pollfd polled[2] = {{.fd = answers[0], .events = POLLIN},
                               {.fd = pidfd, .events = POLLIN}};
    (void)kill(pid, SIGUSR1);
    return poll(polled, 2, patience_ms()) > 0 && (polled[0].revents & POLLIN) &&
           read(answers[0], &byte, 1) == 1;
}

static int become_subreaper(void **state)
{
    (void)state;
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int kill_the_rest(void **state)
{
    (void)state;
    rounds_kill_all(0, NULL, NULL);
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

/* One that loses its parent in the middle of a round comes to us, for the next one. */
static void two_rounds_reach_all_that_is_below(void **state)
{
    (void)state;
    pid_t below = 0;
    pid_t pid = fork_pair(&below);
    int first = pidfd_open(pid, 0);
    int second = pidfd_open(below, 0);
    assert_int_equal(rounds_kill_once(0).pid, 0);
    assert_true(ends(first));
    assert_int_equal(rounds_kill_once(0).pid, 0);
    assert_true(ends(second));
    assert_int_equal(close(first) | close(second), 0);
}

static void all_are_reaped_when_it_is_over(void **state)
{
    (void)state;
    pid_t below = 0;
    for (int i = 0; i < 20; i++)
        (void)fork_pair(&below);
    rounds_kill_all(0, NULL, NULL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void fork_dead(void)
{
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0)
        _exit(1);
}

/* /proc gives a part of such a list at a time. */
static void one_round_reaches_who_is_behind_many_that_are_dead(void **state)
{
    (void)state;
    pid_t below = 0;
    for (int i = 0; i < DEAD_MANY; i++)
        fork_dead();
    int pidfd = pidfd_open(fork_pair(&below), 0);
    assert_int_equal(rounds_kill_once(0).pid, 0);
    assert_true(ends(pidfd));
    assert_int_equal(close(pidfd), 0);
}

static void kill_beside_a_dead_one(void)
{
    pid_t below = 0;
    fork_dead();
    (void)fork_pair(&below);
    traced_begin();
    rounds_kill_all(0, NULL, NULL);
    _exit(0);
}

static uint64_t earliest; /* of the calls that kill, or reap */

static void note_first(pid_t pid, uint64_t number)
{
    (void)pid;
    if (earliest == 0 &&
        (number == SYS_wait4 || number == SYS_kill || number == SYS_pidfd_send_signal))
        earliest = number;
}

/* Who reaps at ordinary priority may wait for the processor meanwhile. */
static void whoever_lives_is_killed_before_anybody_is_reaped(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        kill_beside_a_dead_one();
    int status = traced_run(pid, note_first);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TRACED_CANNOT)
        skip();
    assert_int_equal(status, 0);
    assert_int_not_equal(earliest, 0);
    assert_int_not_equal(earliest, SYS_wait4);
}

/* A round that begins below one process spares what is beside it. */
static void below_one_process_means_nobody_else(void **state)
{
    (void)state;
    pid_t below = 0;
    pid_t beside = 0;
    const struct rounds_process parent = {.pid = fork_pair(&below), .pidfd = -1};
    (void)fork_pair(&beside);
    int own = pidfd_open(below, 0);
    int other = pidfd_open(beside, 0);
    assert_int_equal(rounds_kill_below(&parent).pid, 0);
    assert_true(ends(own));
    assert_true(lives(beside, other));
    assert_int_equal(close(own) | close(other), 0);
}

/* The list said that it is a child of one; now it is another's. */
static void who_is_another_s_child_by_now_is_spared(void **state)
{
    (void)state;
    pid_t below = 0;
    pid_t beside = 0;
    const struct rounds_process parent = {.pid = fork_pair(&below), .pidfd = -1};
    (void)fork_pair(&beside);
    int other = pidfd_open(beside, 0);
    assert_int_equal(rounds_kill_child(&parent, beside).pid, 0);
    assert_true(lives(beside, other));
    int own = pidfd_open(below, 0);
    assert_int_equal(rounds_kill_child(&parent, below).pid, 0);
    assert_true(ends(own));
    assert_int_equal(close(own) | close(other), 0);
}

/* Its parent died in between, and it came to this process. */
static void who_has_come_to_the_killer_is_killed(void **state)
{
    (void)state;
    pid_t below = 0;
    const struct rounds_process parent = {.pid = fork_pair(&below), .pidfd = -1};
    int own = pidfd_open(below, 0);
    assert_int_equal(kill(parent.pid, SIGKILL), 0);
    assert_int_equal(waitpid(parent.pid, NULL, 0), parent.pid);
    assert_int_equal(rounds_kill_child(&parent, below).pid, 0);
    assert_true(ends(own));
    assert_int_equal(close(own), 0);
}

static int line[2]; /* from whom is killed to the killer */

static void become_nobody(void)
{
    if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
        _exit(1);
}

static void fork_nobody(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        become_nobody();
        pid = getpid();
        if (write(line[1], &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
            _exit(1);
        sleep_for_ever();
    }
}

/* It stays: a thread that ends leaves its children to another one. */
static void *fork_nobody_and_stay(void *context)
{
    fork_nobody();
    sleep_for_ever();
    return context;
}

static void fork_nobody_in_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fork_nobody_and_stay, NULL) != 0)
        _exit(1);
    sleep_for_ever();
}

static void fork_nobody_in_the_main_thread(void)
{
    fork_nobody();
    sleep_for_ever();
}

/* A killer without rights over one of root's, which has a child without rights. @return 0 where it
 * killed that child, and said who refused. */
static int kill_below_root(void (*play)(void))
{
    pid_t below = 0;
    pid_t refusing;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || pipe(line) < 0 || (refusing = fork()) < 0)
        return 2;
    if (refusing == 0)
        play();
    become_nobody();
    if (read(line[0], &below, sizeof(below)) != (ssize_t)sizeof(below))
        return 3;
    int pidfd = pidfd_open(below, 0);
    const struct rounds_refused who = rounds_kill_once(0);
    if (who.pid != refusing || who.error != EPERM)
        return 4;
    return ends(pidfd) ? 0 : 5;
}

static void assert_killed_below_root(void (*play)(void))
{
    int status = 0;
    if (getuid() != 0)
        skip(); /* nobody would refuse */
    pid_t killer = fork();
    if (killer == 0)
        _exit(kill_below_root(play));
    assert_int_equal(waitpid(killer, &status, 0), killer);
    assert_int_equal(status, 0);
}

static void who_is_below_one_that_may_not_be_killed_is_killed(void **state)
{
    (void)state;
    assert_killed_below_root(fork_nobody_in_the_main_thread);
}

static void whichever_of_its_threads_has_forked_it(void **state)
{
    (void)state;
    assert_killed_below_root(fork_nobody_in_a_thread);
}

/* A killer to whom /proc shows nobody that it may not trace (hidepid=2 of proc(5)), and below it
 * one that lets nobody trace it, as agents that keep secrets do. @return 0 where it killed both
 * that one and what it had forked; 9 where it cannot be tried. */
static int kill_hidden(void)
{
    int first = -1;
    int second = -1;
    pid_t below = 0;
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", 0, "hidepid=2") < 0)
        return 9;
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0)
        return 2; /* the group root sees all */
    become_nobody();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return 2;
    pid_t hidden = fork_pair(&below);
    if ((first = pidfd_open(hidden, 0)) < 0 || (second = pidfd_open(below, 0)) < 0)
        return 3;
    if (rounds_kill_once(0).pid != 0 || !ends(first))
        return 4;
    return rounds_kill_once(0).pid == 0 && ends(second) ? 0 : 5;
}

static void who_is_hidden_from_the_killer_is_killed(void **state)
{
    (void)state;
    int status = 0;
    if (getuid() != 0)
        skip(); /* no other /proc without rights */
    pid_t killer = fork();
    if (killer == 0)
        _exit(kill_hidden());
    assert_int_equal(waitpid(killer, &status, 0), killer);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
        skip();
    assert_int_equal(status, 0);
}

/* @return whether the next process will have this number. */
static bool give_number(pid_t number)
{
    char text[16];
    int size = snprintf(text, sizeof(text), "%d", (int)number - 1);
    int fd = open(LAST_PID, O_WRONLY | O_CLOEXEC);
    bool given = fd >= 0 && write(fd, text, (size_t)size) == size;
    if (fd >= 0)
        (void)close(fd);
    return given;
}

/* @return a pair whose first process has this number; 0 where numbers cannot be chosen. */
static pid_t fork_pair_as(pid_t number, pid_t *below)
{
    for (int i = 0; i < 100; i++) { /* others fork too */
        if (!give_number(number))
            return 0;
        pid_t pid = fork_pair(below);
        if (pid == number)
            return pid;
        (void)kill(pid, SIGKILL);
        (void)kill(*below, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        (void)waitpid(*below, NULL, 0);
    }
    return 0;
}

static void who_has_the_number_of_one_that_is_gone_is_spared_with_all_below(void **state)
{
    (void)state;
    pid_t below = 0;
    pid_t old = fork();
    if (old == 0)
        sleep_for_ever();
    const struct rounds_process gone = {.pid = old, .pidfd = pidfd_open(old, 0)};
    assert_true(gone.pidfd >= 0);
    assert_int_equal(kill(old, SIGKILL), 0);
    assert_int_equal(waitpid(old, NULL, 0), old);
    pid_t same = fork_pair_as(old, &below);
    if (same == 0)
        skip(); /* not allowed to choose numbers */
    int stranger = pidfd_open(below, 0);
    assert_int_equal(rounds_kill_below(&gone).pid, 0);
    assert_true(lives(below, stranger));
    /* And as itself it is killed. */
    const struct rounds_process itself = {.pid = same, .pidfd = pidfd_open(same, 0)};
    assert_int_equal(rounds_kill_below(&itself).pid, 0);
    assert_true(ends(stranger));
    assert_int_equal(close(gone.pidfd) | close(itself.pidfd) | close(stranger), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, become_subreaper, kill_the_rest)

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_rounds_reach_all_that_is_below),
        TEST(all_are_reaped_when_it_is_over),
        TEST(one_round_reaches_who_is_behind_many_that_are_dead),
        TEST(whoever_lives_is_killed_before_anybody_is_reaped),
        TEST(below_one_process_means_nobody_else),
        TEST(who_is_another_s_child_by_now_is_spared),
        TEST(who_has_come_to_the_killer_is_killed),
        TEST(who_is_below_one_that_may_not_be_killed_is_killed),
        TEST(whichever_of_its_threads_has_forked_it),
        TEST(who_is_hidden_from_the_killer_is_killed),
        TEST(who_has_the_number_of_one_that_is_gone_is_spared_with_all_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* In a PID namespace, where that is allowed: there nobody else takes the numbers that are given. */
int main(void)
{
    int status = 0;
    if (pipe(answers) < 0)
        return 1;
    pid_t pid =
        (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("proc", "/proc", "proc", 0, NULL) < 0)
            return 1;
        return run_all();
    }
    if (pid < 0)
        return run_all();
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* What /proc says of a process, whatever it calls itself. */
#include "process/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A child of ours with this name, stopped by itself. */
static pid_t stopped_child(const char *name)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where an assertion fails */
        (void)prctl(PR_SET_NAME, name);
        (void)raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    return pid;
}

static void a_name_may_hold_anything(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "a) R 1 (b", "))))", "((", " ", "x)\nR 1", ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        pid_t pid = stopped_child(names[i]);
        const struct process_stat stat = process_stat(pid);
        assert_int_equal(stat.state, 'T');
        assert_int_equal(stat.parent, getpid());
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Supervisors look for days. */
static void looking_leaves_no_descriptor_open(void **state)
{
    (void)state;
    char text[64];
    pid_t dead = stopped_child("dead");
    assert_int_equal(kill(dead, SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)dead, &info, WEXITED | WNOWAIT), 0);
    unsigned before = open_descriptors();
    assert_true(process_is_dead(dead));
    assert_false(process_is_dead(getpid()));
    assert_int_equal(process_status(getpid()), -1);
    assert_int_equal(process_status(dead), SIGKILL);
    assert_int_equal(process_tracer(getpid()), 0);
    assert_true(process_has_children(getpid()));
    assert_false(process_has_children(dead));
    assert_null(process_stat_refused());
    assert_true(process_read("/proc/self/stat", text, sizeof(text)) == sizeof(text));
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    assert_int_equal(process_status(dead), -1);
}

static void of_one_that_is_gone_nothing_is_known(void **state)
{
    (void)state;
    pid_t pid = stopped_child("gone");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    const struct process_stat stat = process_stat(pid);
    assert_int_equal(stat.state, '?');
    assert_int_equal(stat.parent, 0);
    assert_int_equal(process_tracer(pid), 0);
}

/* Ends its first thread; the other one goes on until the process is killed. */
static void *go_on(void *unused)
{
    for (;;)
        (void)pause();
    return unused;
}

static pid_t child_of_two_threads(void)
{
    pthread_t thread;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, go_on, NULL) != 0)
            _exit(1);
        (void)syscall(SYS_exit, 0); /* of this thread alone */
    }
    return pid;
}

static void until_it_shows_as_dead(pid_t pid)
{
    while (process_stat(pid).state != 'Z')
        (void)usleep(1000);
}

static void one_whose_first_thread_is_over_lives(void **state)
{
    (void)state;
    pid_t pid = child_of_two_threads();
    until_it_shows_as_dead(pid);
    assert_false(process_is_dead(pid));
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (!process_is_dead(pid))
        (void)usleep(1000);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(process_is_dead(pid)); /* nothing is known any more */
}

static void a_traced_one_is_dead_when_all_its_threads_are(void **state)
{
    (void)state;
    pid_t pid = stopped_child("traced");
    assert_int_equal(process_tracer(pid), 0);
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0) {
        assert_int_equal(errno, ENOSYS); /* qemu lets nobody trace */
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        skip();
    }
    assert_int_equal(process_tracer(pid), getpid());
    assert_false(process_is_dead(pid));
    assert_int_equal(process_status(pid), -1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    until_it_shows_as_dead(pid);
    assert_true(process_is_dead(pid));
    assert_int_equal(process_status(pid), SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_may_hold_anything),
        cmocka_unit_test(looking_leaves_no_descriptor_open),
        cmocka_unit_test(of_one_that_is_gone_nothing_is_known),
        cmocka_unit_test(one_whose_first_thread_is_over_lives),
        cmocka_unit_test(a_traced_one_is_dead_when_all_its_threads_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

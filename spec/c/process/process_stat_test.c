/* What /proc says of a process, whatever it calls itself. */
#include "process/process_stat.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
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

static void of_one_that_is_gone_nothing_is_known(void **state)
{
    (void)state;
    pid_t pid = stopped_child("gone");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    const struct process_stat stat = process_stat(pid);
    assert_int_equal(stat.state, '?');
    assert_int_equal(stat.parent, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_may_hold_anything),
        cmocka_unit_test(of_one_that_is_gone_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "process/plain_fork.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_process_of_its_own_is_begun(void **state)
{
    (void)state;
    volatile int ours = 1;
    int status = 0;
    pid_t parent = getpid();
    pid_t pid = plain_fork(0, NULL);
    if (pid == 0) {
        ours = 2;
        _exit(getppid() == parent && getpid() != parent ? 7 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(ours, 1);
}

static void its_pid_is_noted_before_it_runs(void **state)
{
    (void)state;
    int status = 0;
    pid_t *note =
        mmap(NULL, sizeof(*note), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(note != MAP_FAILED);
    pid_t pid = plain_fork(0, note);
    if (pid == 0)
        _exit(*note == getpid() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(*note, pid);
    (void)munmap(note, sizeof(*note));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_of_its_own_is_begun),
        cmocka_unit_test(its_pid_is_noted_before_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

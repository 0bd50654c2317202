/* Which libraries a forked process has. */
#include "process/libraries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pages.h"

#include "process/plain_fork.h"

/* Of a library of the runtime's that this program has, too: libbsd brings it along. */
#define RUNTIMES "/libmd."
#define EVERYBODYS "/libc.so"

static int count(const char *library)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return -1;
    while (fgets(line, sizeof(line), maps) != NULL)
        found += strstr(line, library) != NULL;
    (void)fclose(maps); /* read only */
    return found;
}

static int count_in_child(const char *library)
{
    int status = 0;
    pid_t pid = plain_fork(0, NULL);
    if (pid == 0)
        _exit(count(library));
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_keeper_has_none_of_the_runtimes_and_the_next_runtime_has_all(void **state)
{
    (void)state;
    int all = count(RUNTIMES), everybodys = count(EVERYBODYS);
    if (all == 0 || everybodys == 0 || !pages_can_be_left_out())
        skip(); /* linked statically */
    libraries_hand_on(false);
    assert_int_equal(count_in_child(RUNTIMES), 0);
    assert_int_equal(count_in_child(EVERYBODYS), everybodys);
    libraries_hand_on(true);
    assert_int_equal(count_in_child(RUNTIMES), all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keeper_has_none_of_the_runtimes_and_the_next_runtime_has_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What `crown-lua info` says that the host lets it do: yes where it does, no where a call that it
 * takes is refused. And asking changes nothing. */
#include "process/features.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "denied.h"
#include "process/process_stat.h"

enum { NO, YES, CHANGED, NOT_HERE };

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 64; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static long locked_kb(void)
{
    static const char key[] = "VmLck:";
    char text[4096] = "";
    (void)process_read("/proc/self/status", text, sizeof(text) - 1);
    const char *at = strstr(text, key);
    return at != NULL ? strtol(at + sizeof(key) - 1, NULL, 10) : -1;
}

/* In a process of its own, which the kernel refuses a call; 0: none. */
static int ask(bool (*feature)(void), int denied)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (denied != 0 && !deny_call(denied, EPERM))
            _exit(NOT_HERE);
        unsigned before = open_descriptors();
        bool has = feature();
        bool left = waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD;
        _exit(open_descriptors() != before || locked_kb() != 0 || left ? CHANGED : has);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Whether this very process, as root, may do it: by the same means, but on its own. */
static bool may_lock(void)
{
    return geteuid() == 0;
}

/* By clone(2), as the feature: an emulated processor (qemu) has unshare(2) but refuses clone(2)
 * these flags. */
static bool may_enter_a_namespace(void)
{
    int status = 0;
    pid_t pid =
        (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
              mount("proc", "/proc", "proc", 0, NULL) != 0);
    if (pid < 0)
        return false;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

static bool may_signal_by_descriptor(void)
{
    int fd = pidfd_open(getpid(), 0);
    return fd >= 0 && pidfd_send_signal(fd, 0, NULL, 0) == 0 && close(fd) == 0;
}

static void are_there_unless_a_call_is_refused(void **state)
{
    (void)state;
    static const struct {
        bool (*feature)(void);
        bool (*surely)(void);
        int denied[3];
    } table[] = {
        {features_pidfd, may_signal_by_descriptor, {SYS_pidfd_open, SYS_pidfd_send_signal}},
        {features_locked_memory, may_lock, {SYS_mlockall}},
        {features_pid_namespaces, may_enter_a_namespace, {SYS_clone, SYS_mount}},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int as_it_is = ask(table[i].feature, 0);
        assert_in_range(as_it_is, NO, YES);
        if (table[i].surely())
            assert_int_equal(as_it_is, YES);
        for (const int *denied = table[i].denied; *denied != 0; denied++) {
            int without = ask(table[i].feature, *denied);
            if (without != NOT_HERE && without != NO)
                fail_msg("feature %zu without call %d: %d", i, *denied, without);
        }
        if (as_it_is == NO)
            print_message("feature %zu is not to be had here\n", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_there_unless_a_call_is_refused),
    };
    return cmocka_run_group_tests_name("features", tests, NULL, NULL);
}

/* deny_calls WHAT COMMAND...: runs it where the kernel refuses WHAT, by seccomp, and where no
 * program may gain privileges. `strict` is what a strict container, or Linux before 5.3, refuses:
 * pidfds, close_range, new namespaces, real-time priority, locked memory; `send_signal` is half of
 * the pidfds. Any other WHAT is one call that crown-lua cannot do without.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUSER)

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY(number, error) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), REFUSE(error)
/* Denies a call whose first argument is so: `test` is BPF_JEQ or BPF_JSET. */
#define DENY_WITH(number, test, argument, error)                                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 3), LOAD(args[0]),                            \
        BPF_JUMP(BPF_JMP | (test) | BPF_K, (argument), 0, 1), REFUSE(error)

static struct sock_filter strict[] = {
    LOAD(nr),
    DENY(SYS_pidfd_open, ENOSYS),
    DENY(SYS_pidfd_send_signal, ENOSYS),
    DENY(SYS_sched_setscheduler, EPERM),
    DENY(SYS_mlockall, EPERM),
    DENY(SYS_unshare, EPERM),
    DENY(SYS_clone3, ENOSYS),
    DENY(SYS_close_range, ENOSYS),
    DENY_WITH(SYS_clone, BPF_JSET, NAMESPACES, EPERM),
    ALLOW,
};
static struct sock_filter send_signal[] = {LOAD(nr), DENY(SYS_pidfd_send_signal, EPERM), ALLOW};
static struct sock_filter subreaper[] = {
    LOAD(nr), DENY_WITH(SYS_prctl, BPF_JEQ, PR_SET_CHILD_SUBREAPER, EINVAL), ALLOW};
static struct sock_filter timerfd[] = {LOAD(nr), DENY(SYS_timerfd_create, ENOSYS), ALLOW};
static struct sock_filter signalfd[] = {LOAD(nr), DENY(SYS_signalfd4, ENOSYS), ALLOW};
static struct sock_filter timer[] = {LOAD(nr), DENY(SYS_timer_create, ENOSYS), ALLOW};

#define NAMED(filter)                                                                              \
#filter,                                                                                       \
    {                                                                                              \
        sizeof(filter) / sizeof(filter[0]), filter                                                 \
    }
static const struct {
    const char *what;
    struct sock_fprog program;
} filters[] = {{NAMED(strict)},  {NAMED(send_signal)}, {NAMED(subreaper)},
               {NAMED(timerfd)}, {NAMED(signalfd)},    {NAMED(timer)}};

static const struct sock_fprog *filter_for(const char *what)
{
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        if (strcmp(filters[i].what, what) == 0)
            return &filters[i].program;
    return NULL;
}

int main(int argc, char **argv)
{
    const struct sock_fprog *program = argc > 2 ? filter_for(argv[1]) : NULL;
    if (program == NULL || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) < 0) {
        perror("deny_calls");
        return 2;
    }
    (void)execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}

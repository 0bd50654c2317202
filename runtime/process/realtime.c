#include "process/realtime.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define OOM_SCORE "/proc/self/oom_score_adj"
#define OOM_SPARED "-900"
#define ORDINARY_MOST 16 /* that are reaped at ordinary priority in a row */

/* As it was when the supervisor started; the score is empty until both are read. */
static char original_oom[16];
static int original_nice;
static bool spared;
static int priority; /* real-time, of this process; 0: ordinary */

static bool write_oom(const char *score)
{
    int fd = open(OOM_SCORE, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool wrote = write(fd, score, strlen(score)) > 0; /* lowering it is a privilege: proc(5) */
    (void)close(fd);
    return wrote;
}

static void read_oom(void)
{
    int fd = open(OOM_SCORE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t size = read(fd, original_oom, sizeof(original_oom) - 1);
    original_oom[size > 0 ? size : 0] = '\0';
    (void)close(fd);
}

static bool take(int wanted)
{
    const struct sched_param param = {.sched_priority = wanted};
    /* RESET_ON_FORK: what this process forks begins with ordinary priority (sched(7)). */
    return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0;
}

/* The highest that is allowed. A child may have real-time priority too, and spin: at a lower one
 * than its own nobody would get a processor to kill it, and no timer would end who has to. */
static int take_highest(void)
{
    struct rlimit limit;
    int highest = sched_get_priority_max(SCHED_FIFO);
    if (take(highest))
        return highest;
    if (getrlimit(RLIMIT_RTPRIO, &limit) == 0 && limit.rlim_cur > 0 &&
        limit.rlim_cur < (rlim_t)highest && take((int)limit.rlim_cur))
        return (int)limit.rlim_cur;
    return 0;
}

static bool take_priority(void)
{
    if (priority > 0 && take(priority))
        return true;
    int taken = take_highest();
    if (priority != taken) /* mostly inherited: keepers need no page of their own for it */
        priority = taken;
    return taken > 0;
}

pid_t realtime_wait(pid_t which, int *status, int options)
{
    const struct sched_param none = {.sched_priority = 0};
    siginfo_t dead = {.si_pid = 0};
    if (priority == 0)
        return waitpid(which, status, options);
    if (waitid(which > 0 ? P_PID : P_ALL, (id_t)which, &dead, options | WEXITED | WNOWAIT) < 0)
        return -1;
    if (dead.si_pid == 0)
        return 0;
    (void)sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none); /* always allowed */
    pid_t pid = waitpid(dead.si_pid, status, options);
    (void)take_priority();
    return pid;
}

pid_t realtime_reap(int *status, int options, unsigned before)
{
    return before < ORDINARY_MOST ? realtime_wait(-1, status, options)
                                  : waitpid(-1, status, options);
}

bool realtime_enter(void)
{
    read_oom();
    original_nice = getpriority(PRIO_PROCESS, 0);
    spared = write_oom(OOM_SPARED);
    return take_priority();
}

void realtime_enter_again(void)
{
    (void)take_priority(); /* the score is handed on */
}

bool realtime_lock_memory(void)
{
    /* ONFAULT: only what is used, not every page of every library. */
    return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

void realtime_leave(void)
{
    if (original_oom[0] == '\0')
        return;
    if (spared)
        (void)write_oom(original_oom); /* as it was: allowed */
    /* The reset at the fork has taken it too: a command under nice(1) is to stay there. */
    (void)setpriority(PRIO_PROCESS, 0, original_nice); /* to less than 0 is a privilege */
}

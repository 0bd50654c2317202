#include "process/rounds.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/process_stat.h"
#include "process/realtime.h"

/* How often we look, not a guess at how long it takes: a child's death is noticed at once. */
#define PAUSE_FIRST_NS (500 * NS_PER_US)
#define PAUSE_MOST_NS (50 * NS_PER_MS)
#define CHILDREN_MAX 65536 /* bytes of one `children` file read at once */
#define DEPTH_MOST 64      /* deeper ones come nearer as their parents die */

struct round {
    struct rounds_refused refused;
    unsigned depth;
    unsigned alive; /* how many there are that were not dead */
    pid_t last;     /* a child of ours; 0: none */
};

/* By its number where there are no descriptors of processes, or seccomp gives them and refuses to
 * send by them. */
static int send_kill(const struct rounds_process *process)
{
    /* same (term): by -1, nothing is sent */
    if (process->pidfd >= 0 && pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0) == 0)
        return 0;
    /* same (term): who has no descriptor was not looked for in vain (kill_child) */
    return process->pidfd >= 0 && errno == ESRCH ? -1 : kill(process->pid, SIGKILL);
}

/* Whether its number is still its own: nobody else gets it before it is reaped. */
static bool is_itself(const struct rounds_process *process)
{
    return process->pidfd < 0 || pidfd_send_signal(process->pidfd, 0, NULL, 0) == 0 ||
           errno != ESRCH;
}

/* Whether it is a child of this process, and dead already. Asked of the kernel: /proc may hide it
 * (hidepid of proc(5)), and who loses its parent comes to us in the end. */
static bool is_ours(const struct rounds_process *process, bool *dead)
{
    siginfo_t info = {.si_pid = 0};
    bool stands = process->pidfd >= 0;
    if (waitid(stands ? P_PIDFD : P_PID, (id_t)(stands ? process->pidfd : process->pid), &info,
               WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
        return false;
    *dead = info.si_pid != 0;
    return true;
}

static void visit(struct round *round, const struct rounds_process *parent);

/* Parents first: a dead parent forks no more, and its children come to us, the subreaper. */
static void kill_with_all_below(struct round *round, const struct rounds_process *process)
{
    pid_t pid = process->pid;
    round->alive++; /* same (swap): it is no 0 then either */
    if (pid != round->last && send_kill(process) < 0 && errno != ESRCH)
        round->refused = (struct rounds_refused){.pid = pid, .error = errno};
    visit(round, process);
    if (pid == round->last) /* reaps what is dead below it */
        (void)kill(pid, process_has_children(pid) ? SIGCONT : SIGKILL);
}

/* The list is a moment old: who was on it may be gone, and its number another's, who must not be
 * touched. So its descriptor first, then a look whether it belongs here. */
static void kill_child(struct round *round, const struct rounds_process *parent, pid_t pid)
{
    const struct rounds_process child = {.pid = pid, .pidfd = pidfd_open(pid, 0)};
    bool dead = false;
    if (child.pidfd < 0 && errno == ESRCH)
        return;
    bool below =
        is_ours(&child, &dead) || (process_stat(pid).parent == parent->pid && is_itself(parent));
    if (below && !dead)
        kill_with_all_below(round, &child);
    if (child.pidfd >= 0)
        (void)close(child.pidfd); /* nothing to lose */
}

static void visit_list(struct round *round, const struct rounds_process *parent, char *list)
{
    char *end = NULL;
    for (char *at = list;; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return;
        kill_child(round, parent, (pid_t)pid);
    }
}

/* The children of one thread are in /proc/PID/task/TID/children (proc(5)): the living ones may
 * stand behind hundreds that nobody has reaped yet. */
static void visit_task(struct round *round, const struct rounds_process *parent, const char *path)
{
    char *list = malloc(CHILDREN_MAX);
    ssize_t size = list != NULL ? process_read(path, list, CHILDREN_MAX - 1) : -1;
    if (size > 0) { /* else it has none, or is gone in the meantime */
        list[size] = '\0';
        visit_list(round, parent, list);
    }
    free(list);
}

static void visit(struct round *round, const struct rounds_process *parent)
{
    char path[300];
    if (round->depth >= DEPTH_MOST)
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)parent->pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return;
    round->depth++;
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (task->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)parent->pid,
                       task->d_name);
        visit_task(round, parent, path);
    }
    round->depth--;
    (void)closedir(tasks); /* read only */
}

struct rounds_refused rounds_kill_below(const struct rounds_process *parent)
{
    struct round round = {.depth = 0};
    visit(&round, parent);
    return round.refused;
}

struct rounds_refused rounds_kill_child(const struct rounds_process *parent, pid_t pid)
{
    struct round round = {.depth = 0};
    kill_child(&round, parent, pid);
    return round.refused;
}

static struct round kill_once(pid_t last)
{
    const struct rounds_process self = {.pid = getpid(), .pidfd = -1};
    struct round round = {.last = last};
    visit(&round, &self);
    return round;
}

struct rounds_refused rounds_kill_once(pid_t last)
{
    return kill_once(last).refused;
}

/* Without reaping any: that may take a while. */
static bool has_no_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

/* @return how many; -1 when there is no child any more. */
static int reap(void)
{
    unsigned count = 0;
    pid_t pid;
    while ((pid = realtime_reap(NULL, WNOHANG | __WALL, count)) > 0)
        count++;
    return pid < 0 && errno == ECHILD ? -1 : (int)count;
}

/* Until a child dies, where SIGCHLD is blocked, as in keepers and wardens. */
static void wait_a_moment(int64_t ns)
{
    const struct timespec pause = {0, ns};
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigtimedwait(&set, NULL, &pause); /* cut short by another signal: the sooner the better */
}

/* @return the children of this process, which has one thread, as text; NULL where that is not to be
 * had whole. The caller frees it. */
static char *own_children(void)
{
    char *list = malloc(CHILDREN_MAX);
    ssize_t size =
        list != NULL ? process_read("/proc/thread-self/children", list, CHILDREN_MAX - 1) : -1;
    if (size <= 0 || size == CHILDREN_MAX - 1) {
        free(list);
        return NULL;
    }
    list[size] = '\0';
    return list;
}

static bool all_are_dead(const char *list)
{
    char *end = NULL;
    for (const char *at = list;; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return true;
        if (!process_is_dead((pid_t)pid))
            return false;
    }
}

/* Whether all children are dead, and kept from us by who traces them. What a child leaves becomes
 * ours before it shows as dead. So where all of a list are dead, and the list is the same
 * afterwards, nothing below lives. */
static bool only_dead_are_left(void)
{
    char *before = own_children();
    bool dead = before != NULL && all_are_dead(before);
    char *after = dead ? own_children() : NULL;
    bool same = after != NULL && strcmp(before, after) == 0;
    free(before);
    free(after);
    return same;
}

void rounds_kill_all(pid_t last, void (*refused)(void *context, const struct rounds_refused *who),
                     void *context)
{
    int64_t pause_ns = PAUSE_FIRST_NS;
    if (has_no_children())
        return; /* mostly so, when a child has ended */
    for (;;) {
        const struct round round = kill_once(last);
        /* Others may have the processor while this process reaps, at ordinary priority, so nobody
         * is reaped while one lives that may fork. One that cannot be killed may live for ever. */
        int reaped = round.alive == 0 || pause_ns == PAUSE_MOST_NS ? reap() : 0;
        if (reaped < 0)
            return;
        if (pause_ns == PAUSE_MOST_NS && only_dead_are_left())
            return;
        if (round.refused.pid != 0 && refused != NULL) {
            refused(context, &round.refused);
            refused = NULL;
        }
        if (reaped > 0)
            pause_ns = PAUSE_FIRST_NS;
        wait_a_moment(pause_ns);
        pause_ns = pause_ns * 2 < PAUSE_MOST_NS ? pause_ns * 2 : PAUSE_MOST_NS;
    }
}

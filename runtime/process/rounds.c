#include "process/rounds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUND_PAUSE_NS (500 * NS_PER_US) /* the kernel needs a moment to tear a process down */
#define CHILDREN_MAX 65536               /* bytes of one `children` file read at once */

/* Visits the children of `pid`, whose children file is (proc(5)): /proc/PID/task/TID/children. */
static unsigned visit_children(pid_t pid, pid_t spare, int signal, unsigned depth);

static unsigned visit_list(char *list, pid_t spare, int signal, unsigned depth)
{
    unsigned count = 0;
    char *end = NULL;
    for (char *at = list;; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return count;
        if (pid == spare)
            continue;
        /* Parents first: a dead parent forks no more, and its children come to us, the subreaper.
         */
        if (kill((pid_t)pid, signal) == 0)
            count++;
        count += visit_children((pid_t)pid, spare, signal, depth + 1);
    }
}

static unsigned visit_task(const char *path, pid_t spare, int signal, unsigned depth)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* gone in the meantime */
    char *list = malloc(CHILDREN_MAX);
    unsigned count = 0;
    if (list != NULL) {
        ssize_t size = read(fd, list, CHILDREN_MAX - 1);
        if (size > 0) {
            list[size] = '\0';
            count = visit_list(list, spare, signal, depth);
        }
        free(list);
    }
    (void)close(fd); /* read only */
    return count;
}

static unsigned visit_children(pid_t pid, pid_t spare, int signal, unsigned depth)
{
    char path[300];
    unsigned count = 0;
    if (depth > 64)
        return 0; /* deeper ones come nearer as their parents die */
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return 0;
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (task->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, task->d_name);
        count += visit_task(path, spare, signal, depth);
    }
    (void)closedir(tasks); /* read only */
    return count;
}

unsigned rounds_kill_once(pid_t spare)
{
    return visit_children(getpid(), spare, SIGKILL, 0);
}

void rounds_signal(int signal)
{
    (void)visit_children(getpid(), 0, signal, 0);
}

void rounds_kill_all(void (*reaped)(pid_t pid, int status, void *context), void *context)
{
    for (;;) {
        (void)rounds_kill_once(0);
        int status;
        pid_t pid;
        while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
            if (reaped != NULL)
                reaped(pid, status, context);
        if (pid < 0 && errno == ECHILD)
            return;
        /* Not a guess at how long it takes, only how often we look: what dies is reaped in the next
         * round. */
        const struct timespec pause = {0, ROUND_PAUSE_NS};
        (void)nanosleep(&pause, NULL); /* cut short by a signal: the sooner the better */
    }
}

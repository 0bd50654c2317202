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
static void visit_children(pid_t pid, unsigned depth);

static void visit_list(char *list, unsigned depth)
{
    char *end = NULL;
    for (char *at = list;; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return;
        /* Parents first: a dead parent forks no more, and its children come to us, the subreaper.
         */
        (void)kill((pid_t)pid, SIGKILL); /* dead already: the better */
        visit_children((pid_t)pid, depth + 1);
    }
}

static void visit_task(const char *path, unsigned depth)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* gone in the meantime */
    char *list = malloc(CHILDREN_MAX);
    if (list != NULL) {
        ssize_t size = read(fd, list, CHILDREN_MAX - 1);
        if (size > 0) {
            list[size] = '\0';
            visit_list(list, depth);
        }
        free(list);
    }
    (void)close(fd); /* read only */
}

static void visit_children(pid_t pid, unsigned depth)
{
    char path[300];
    if (depth > 64)
        return; /* deeper ones come nearer as their parents die */
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return;
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (task->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, task->d_name);
        visit_task(path, depth);
    }
    (void)closedir(tasks); /* read only */
}

void rounds_kill_once(void)
{
    visit_children(getpid(), 0);
}

void rounds_kill_all(void)
{
    for (;;) {
        rounds_kill_once();
        pid_t pid;
        do
            pid = waitpid(-1, NULL, WNOHANG | __WALL);
        while (pid > 0);
        if (pid < 0 && errno == ECHILD)
            return;
        /* Not a guess at how long it takes, only how often we look: what dies is reaped in the next
         * round. */
        const struct timespec pause = {0, ROUND_PAUSE_NS};
        (void)nanosleep(&pause, NULL); /* cut short by a signal: the sooner the better */
    }
}

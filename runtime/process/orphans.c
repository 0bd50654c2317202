#include "process/orphans.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX 65536
#define ENVIRON_MAX (128 * 1024)
#define MARK "CROWN_ELECTION="

static ssize_t read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, text, size);
    (void)close(fd); /* read only */
    return got;
}

/* Children get CROWN_ELECTION from us; whoever wipes its environment and daemonizes under a
 * supervisor that is process 1 escapes this last net (not the keeper's and the warden's). */
static bool is_ours(pid_t pid)
{
    static char environment[ENVIRON_MAX];
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    ssize_t size = read_file(path, environment, sizeof(environment));
    return size > 0 && memmem(environment, (size_t)size, MARK, sizeof(MARK) - 1) != NULL;
}

unsigned orphans_kill(pid_t runtime, const struct keepers *keepers, bool init)
{
    static char list[LIST_MAX];
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    ssize_t size = read_file(path, list, sizeof(list) - 1);
    unsigned count = 0;
    char *end = NULL;
    if (size <= 0)
        return 0;
    list[size] = '\0';
    for (char *at = list;; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            return count;
        if (pid == runtime || keepers_has(keepers, pid) || (init && !is_ours(pid)))
            continue;
        /* Its children come to us in their turn when it is dead. */
        if (kill(pid, SIGKILL) == 0)
            count++;
    }
}

#include "process/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process_stat process_stat(pid_t pid)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd); /* read only */
    text[size > 0 ? size : 0] = '\0';
    /* "PID (NAME) STATE PPID": the name may hold anything, brackets too. */
    const char *after = strrchr(text, ')');
    if (after == NULL || strlen(after) <= 4)
        return (struct process_stat){.state = '?'};
    return (struct process_stat){.state = after[2], .parent = (pid_t)strtol(after + 4, NULL, 10)};
}

static bool finds_itself(void)
{
    char number[32];
    ssize_t length = readlink("/proc/self", number, sizeof(number) - 1);
    if (length < 0)
        return false;
    number[length] = '\0';
    errno = ESRCH;
    return strtol(number, NULL, 10) == getpid();
}

const char *process_stat_refused(void)
{
    if (!finds_itself())
        return "find itself in /proc";
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return "list its children in /proc";
    (void)close(fd); /* read only */
    return NULL;
}

bool process_has_children(pid_t pid)
{
    char path[64];
    char first;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    bool has = read(fd, &first, 1) > 0;
    (void)close(fd); /* read only */
    return has;
}

ssize_t process_read(const char *path, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (length < size && (got = read(fd, text + length, size - length)) > 0)
        length += (size_t)got;
    (void)close(fd); /* read only */
    return length > 0 ? (ssize_t)length : got;
}

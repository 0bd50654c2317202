#include "process/process_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void read_text(const char *path, char *text, size_t room)
{
    ssize_t size = process_read(path, text, room - 1);
    text[size > 0 ? size : 0] = '\0'; /* same (swap): of 0 bytes, that is the same */
}

/* "PID (NAME) STATE PPID": the name may hold anything, brackets too. @return from its closing
 * bracket on, or NULL. */
static const char *read_stat(const char *path, char *text, size_t room)
{
    read_text(path, text, room);
    const char *after = strrchr(text, ')');
    return after != NULL && strlen(after) > 4 ? after : NULL;
}

struct process_stat process_stat(pid_t pid)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *after = read_stat(path, text, sizeof(text));
    if (after == NULL)
        return (struct process_stat){.state = '?'};
    return (struct process_stat){.state = after[2], .parent = (pid_t)strtol(after + 4, NULL, 10)};
}

static bool is_over(char state)
{
    return state == 'Z' || state == 'X';
}

/* @return whether those of its threads that are listed here are over. */
static bool threads_are_over(pid_t pid, const char *list, ssize_t size)
{
    char path[64];
    char text[1024];
    for (ssize_t at = 0; at < size;) {
        const struct dirent64 *entry = (const void *)(list + at);
        at += entry->d_reclen; /* "." has no stat, and that of ".." is the first thread's */
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
        const char *after = read_stat(path, text, sizeof(text));
        if (after != NULL && !is_over(after[2]))
            return false;
    }
    return true;
}

/* The first thread may be over while others go on: then the process shows as Z, and lives. */
bool process_is_dead(pid_t pid)
{
    _Alignas(struct dirent64) char list[2048];
    char path[64];
    ssize_t size = -1;
    bool over = is_over(process_stat(pid).state);
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* of -1, size is -1 below */
    /* same (number): an entry is longer */
    while (over && (size = syscall(SYS_getdents64, fd, list, sizeof(list))) > 0)
        over = threads_are_over(pid, list, size);
    (void)close(fd);  /* read only */
    return size == 0; /* the list was read to its end: nothing was found that is not over */
}

pid_t process_tracer(pid_t pid)
{
    static const char key[] = "\nTracerPid:";
    char path[64];
    char text[4096];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    read_text(path, text, sizeof(text));
    const char *at = strstr(text, key);
    /* same (number term): a tab follows */
    return at != NULL ? (pid_t)strtol(at + sizeof(key) - 1, NULL, 10) : 0;
}

int process_status(pid_t pid)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *after = read_stat(path, text, sizeof(text));
    if (after == NULL || !is_over(after[2]))
        return -1;
    const char *last = strrchr(after, ' '); /* exit_code: proc(5) */
    return (int)strtol(last, NULL, 10);
}

static bool finds_itself(void)
{
    char number[32];
    ssize_t length = readlink("/proc/self", number, sizeof(number) - 1);
    if (length < 0) /* same (number swap): a number is longer */
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
    /* same (term): without room, it reads nothing */
    while (length < size && (got = read(fd, text + length, size - length)) > 0)
        length += (size_t)got;
    (void)close(fd); /* read only */
    return length > 0 ? (ssize_t)length : got;
}

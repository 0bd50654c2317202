/* Finds the processes of the stage. */
#include "stage_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_MOST (64 * 1024)

static void read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got = 0;
    while (fd >= 0 && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    if (fd >= 0)
        (void)close(fd);
}

static bool has_name(pid_t pid, const char *name)
{
    char path[64];
    char text[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    read_text(path, text, sizeof(text));
    text[strcspn(text, "\n")] = '\0';
    return strcmp(text, name) == 0;
}

char stage_state(pid_t pid)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    read_text(path, text, sizeof(text));
    const char *after = strrchr(text, ')');
    return after != NULL ? after[2] : '\0';
}

static pid_t find_below(pid_t pid, const char *name)
{
    char path[64];
    char *list = malloc(LIST_MOST);
    pid_t found = 0;
    char *end = NULL;
    assert_non_null(list);
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    read_text(path, list, LIST_MOST);
    for (char *at = list; found == 0; at = end) {
        pid_t child = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        found = has_name(child, name) ? child : find_below(child, name);
    }
    free(list);
    return found;
}

pid_t stage_find(const char *name)
{
    return find_below(getpid(), name);
}

pid_t stage_child_of(pid_t parent)
{
    char path[64];
    char text[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    read_text(path, text, sizeof(text));
    return (pid_t)strtol(text, NULL, 10);
}

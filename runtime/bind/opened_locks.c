#include "bind/opened_locks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind/bind.h"

#define KERNEL_PARENT 2            /* the process that all threads of the kernel are children of */
#define KERNEL_THREAD 0x00200000UL /* PF_KTHREAD, of the flags in /proc/PID/stat */
#define KERNEL_THREADS_MOST 4096   /* more than that are looked at like everybody else */

/* Threads of the kernel, sorted: most of the processes of many hosts, and none has files open. */
struct kernel_threads {
    int pids[KERNEL_THREADS_MOST];
    size_t count;
};

static int compare(const void *one, const void *other)
{
    const int *a = one;
    const int *b = other;
    return (*a > *b) - (*a < *b);
}

/* In a PID namespace an ordinary process has that number. */
static bool is_kernel_thread(int pid)
{
    char path[64];
    unsigned long flags = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    /* The kernel's own name for it has no bracket. */
    bool known = fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %lu", &flags) == 1;
    (void)fclose(file); /* read only */
    return known && (flags & KERNEL_THREAD) != 0;
}

static void list_kernel_threads(struct kernel_threads *threads)
{
    char path[64];
    threads->count = 0;
    if (!is_kernel_thread(KERNEL_PARENT))
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", KERNEL_PARENT, KERNEL_PARENT);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    while (threads->count < KERNEL_THREADS_MOST &&
           fscanf(file, "%d", &threads->pids[threads->count]) == 1)
        threads->count++;
    (void)fclose(file); /* read only */
    qsort(threads->pids, threads->count, sizeof(threads->pids[0]), compare);
}

static bool may_have_files(const struct kernel_threads *threads, const char *name)
{
    const int pid = (int)strtol(name, NULL, 10);
    return pid > 0 && bsearch(&pid, threads->pids, threads->count, sizeof(pid), compare) == NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), rest = strlen(end);
    return size >= rest && strcmp(text + size - rest, end) == 0;
}

/* @return false where no descriptor of this process may be looked at: it is another user's. */
static bool add_descriptor(lua_State *L, const char *pid, int directory, const char *name)
{
    char path[PATH_MAX];
    /* No lock is handed on as a standard stream, and each look takes a while. */
    if (strtol(name, NULL, 10) <= STDERR_FILENO)
        return true;
    ssize_t size = readlinkat(directory, name, path, sizeof(path) - 1);
    if (size < 0)
        return errno != EACCES;
    path[size] = '\0';
    if (ends_with(path, ".lock") || ends_with(path, ".lock (deleted)")) {
        lua_pushfstring(L, "/proc/%s/fd/%s", pid, name);
        lua_pushstring(L, path);
        lua_rawset(L, -3);
    }
    return true;
}

/* Adds the locks that a process has open to the table on the stack. Without opendir, which looks at
 * each directory and allocates for it: there is one for each process of the host. */
static void add_opened(lua_State *L, const char *pid)
{
    char path[64];
    _Alignas(struct dirent64) char entries[8192];
    bool allowed = true;
    ssize_t size;
    (void)snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    while (allowed && (size = getdents64(directory, entries, sizeof(entries))) > 0)
        for (ssize_t at = 0; allowed && at < size;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            allowed = add_descriptor(L, pid, directory, entry->d_name);
            at += entry->d_reclen;
        }
    (void)close(directory); /* read only */
}

int push_opened_locks(lua_State *L)
{
    struct kernel_threads threads;
    DIR *processes = opendir("/proc");
    if (processes == NULL)
        return push_errno(L, "read the directory", "/proc");
    list_kernel_threads(&threads);
    lua_newtable(L);
    for (struct dirent *entry = readdir(processes); entry != NULL; entry = readdir(processes))
        if (may_have_files(&threads, entry->d_name))
            add_opened(L, entry->d_name);
    (void)closedir(processes); /* read only */
    return 1;
}

#include "whole_rounds.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>

#include "process/process_stat.h"
#include "process/realtime.h"

#include <cmocka.h>

#define FIRST_DESCRIPTOR 100000
#define THREADS 2

struct whole_rounds whole_rounds;

static struct {
    unsigned waits;
    int reading; /* an entry of a folder */
} world;

int whole_rounds_open(void **state)
{
    (void)state;
    memset(&whole_rounds, 0, sizeof(whole_rounds));
    memset(&world, 0, sizeof(world));
    notes_forget();
    return 0;
}

int whole_rounds_close(void **state)
{
    (void)state;
    return whole_rounds.open == 0 ? 0 : -1;
}

struct whole_being *has(pid_t parent, pid_t pid)
{
    assert_true(whole_rounds.count < ROUNDS_MOST);
    struct whole_being *made = &whole_rounds.beings[whole_rounds.count++];
    *made = (struct whole_being){.pid = pid, .parent = parent};
    return made;
}

struct whole_being *being(pid_t pid)
{
    for (unsigned i = 0; i < whole_rounds.count; i++)
        if (whole_rounds.beings[i].pid == pid)
            return &whole_rounds.beings[i];
    return NULL;
}

static int failed(int error)
{
    errno = error;
    return -1;
}

static int take(pid_t pid, int signal, const char *how)
{
    struct whole_being *who = being(pid);
    if (who == NULL)
        return failed(ESRCH);
    errno = signal == 0 ? ESRCH : EPERM; /* of an earlier call: one that succeeds leaves it */
    if (signal == 0)
        return 0;
    notes_add("%s %d%s",
              signal == SIGKILL   ? "kills"
              : signal == SIGCONT ? "continues"
                                  : "signals",
              (int)pid, how);
    if (who->refuses != 0)
        return failed(who->refuses);
    who->dying = who->dying || signal == SIGKILL;
    return 0;
}

static void die(struct whole_being *who)
{
    who->dead = true;
    who->dying = false;
    for (unsigned i = 0; i < whole_rounds.count; i++)
        if (whole_rounds.beings[i].parent == who->pid)
            whole_rounds.beings[i].parent = ROUNDS_KILLER;
}

/* --- the kernel */

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return ROUNDS_KILLER;
}

int __wrap_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
    return take(pid, signal, " by its number");
}

int __wrap_pidfd_open(pid_t pid, unsigned flags);
int __wrap_pidfd_open(pid_t pid, unsigned flags)
{
    assert_int_equal(flags, 0);
    if (whole_rounds.no_descriptors)
        return failed(ENOSYS);
    if (being(pid) == NULL)
        return failed(ESRCH);
    whole_rounds.open++;
    return FIRST_DESCRIPTOR + pid;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (fd < FIRST_DESCRIPTOR)
        return __real_close(fd);
    whole_rounds.open--;
    return 0;
}

int __wrap_pidfd_send_signal(int fd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int fd, int signal, siginfo_t *info, unsigned flags)
{
    assert_null(info);
    assert_int_equal(flags, 0);
    if (whole_rounds.descriptors_refuse != 0)
        return failed(whole_rounds.descriptors_refuse);
    return take(fd - FIRST_DESCRIPTOR, signal, "");
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    assert_int_equal(options, WEXITED | WNOHANG | WNOWAIT | __WALL);
    if (type == P_ALL) {
        for (unsigned i = 0; i < whole_rounds.count; i++)
            if (whole_rounds.beings[i].parent == ROUNDS_KILLER)
                return 0;
        return failed(ECHILD);
    }
    const struct whole_being *who = being((pid_t)(type == P_PIDFD ? id - FIRST_DESCRIPTOR : id));
    if (who == NULL || who->parent != ROUNDS_KILLER)
        return failed(ECHILD);
    if (who->dead)
        info->si_pid = who->pid; /* else it is left as it is: waitid(2) */
    return 0;
}

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *most);
int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *most)
{
    assert_null(info);
    assert_int_equal(sigismember(set, SIGCHLD), 1);
    notes_add("waits for %g ms%s", (double)most->tv_nsec / 1e6,
              most->tv_sec != 0 ? " and more" : "");
    for (unsigned i = 0; i < whole_rounds.count; i++)
        if (whole_rounds.beings[i].dying)
            die(&whole_rounds.beings[i]);
    world.waits++;
    assert_true(world.waits < 100);
    if (whole_rounds.waited != NULL)
        whole_rounds.waited(world.waits);
    return -1;
}

pid_t __wrap_realtime_reap(int *status, int options, unsigned before);
pid_t __wrap_realtime_reap(int *status, int options, unsigned before)
{
    bool any = false;
    assert_null(status);
    assert_int_equal(options, WNOHANG | __WALL);
    for (unsigned i = 0; i < whole_rounds.count; i++) {
        struct whole_being *who = &whole_rounds.beings[i];
        any = any || who->parent == ROUNDS_KILLER;
        if (who->parent != ROUNDS_KILLER || !who->dead || who->held)
            continue;
        const pid_t pid = who->pid;
        notes_add("reaps %d, after %u", (int)pid, before);
        *who = whole_rounds.beings[--whole_rounds.count];
        return pid;
    }
    return any ? 0 : failed(ECHILD);
}

/* --- /proc */

/* Any folder that the real readdir would not know. */
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    int pid;
    assert_int_equal(sscanf(path, "/proc/%d/task", &pid), 1);
    if (pid != ROUNDS_KILLER && being(pid) == NULL)
        return NULL;
    whole_rounds.open++;
    return calloc(1, sizeof(int));
}

struct dirent *__wrap_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder)
{
    static const char *const names[] = {".", "..", "0", "1"};
    static struct dirent entry;
    int *at = (int *)(void *)folder;
    if (*at == 2 + THREADS)
        return NULL;
    (void)strcpy(entry.d_name, names[(*at)++]);
    return &entry;
}

int __wrap_closedir(DIR *folder);
int __wrap_closedir(DIR *folder)
{
    whole_rounds.open--;
    free(folder);
    return 0;
}

static ssize_t list_children(pid_t parent, int thread, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < whole_rounds.count; i++) {
        const struct whole_being *who = &whole_rounds.beings[i];
        if (who->parent == parent && (thread < 0 || who->thread == thread))
            used += (size_t)snprintf(text + used, room - used, "%d ", (int)who->pid);
    }
    if (parent == ROUNDS_KILLER && thread == 0 && whole_rounds.listed != 0)
        used += (size_t)snprintf(text + used, room - used, "%d ", (int)whole_rounds.listed);
    return (ssize_t)used;
}

ssize_t __wrap_process_read(const char *path, char *text, size_t size);
ssize_t __wrap_process_read(const char *path, char *text, size_t size)
{
    int pid, thread;
    if (strcmp(path, "/proc/thread-self/children") == 0) {
        const ssize_t used = list_children(ROUNDS_KILLER, -1, text, size);
        if (whole_rounds.comes_as_one_looks != 0)
            (void)has(ROUNDS_KILLER, whole_rounds.comes_as_one_looks);
        whole_rounds.comes_as_one_looks = 0;
        return whole_rounds.lists_are_cut ? (ssize_t)size : used;
    }
    if (sscanf(path, "/proc/%d/task/%d/children", &pid, &thread) != 2)
        return -1; /* "." and ".." */
    return list_children(pid, thread, text, size);
}

struct process_stat __wrap_process_stat(pid_t pid);
struct process_stat __wrap_process_stat(pid_t pid)
{
    const struct whole_being *who = being(pid);
    if (who == NULL || who->hidden)
        return (struct process_stat){.state = '?'};
    return (struct process_stat){.state = who->dead ? 'Z' : 'S', .parent = who->parent};
}

bool __wrap_process_is_dead(pid_t pid);
bool __wrap_process_is_dead(pid_t pid)
{
    return being(pid) != NULL && being(pid)->dead;
}

bool __wrap_process_has_children(pid_t pid);
bool __wrap_process_has_children(pid_t pid)
{
    for (unsigned i = 0; i < whole_rounds.count; i++)
        if (whole_rounds.beings[i].parent == pid)
            return true;
    return false;
}

#include "process/orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/process_stat.h"

#define LIST_MAX (KEEPERS_MAX * 12) /* as many keepers as there may be, and more */
#define ENVIRON_MAX (128 * 1024)
#define MARK "CROWN_ELECTION="

/* Children get CROWN_ELECTION from us; whoever wipes its environment and daemonizes under a
 * supervisor that is process 1 escapes this last net (not the keeper's and the warden's). */
static bool is_ours(const struct keepers *keepers, pid_t pid)
{
    static char environment[ENVIRON_MAX];
    char path[64];
    if (keepers_has_warden(keepers, pid))
        return true;
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    ssize_t size = process_read(path, environment, sizeof(environment));
    return size > 0 && memmem(environment, (size_t)size, MARK, sizeof(MARK) - 1) != NULL;
}

/* A warden whose keeper is dead kills its tree by itself, also if this process dies now, and then
 * nobody but it holds the tree's locks. So it must not die before the tree: it is only awakened, in
 * case that it is stopped.
 * @return whether it is there all the same. Only this process reaps its children, so the number is
 * nobody else's. */
static bool kill_orphan(const struct keepers *keepers, pid_t pid, struct rounds_refused *refused)
{
    if (kill(pid, keepers_has_warden(keepers, pid) && process_has_children(pid) ? SIGCONT
                                                                                : SIGKILL) == 0)
        return true;
    if (errno == ESRCH)
        return false;
    *refused = (struct rounds_refused){.pid = pid, .error = errno};
    return true;
}

static ssize_t read_children(char *list)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    ssize_t size = process_read(path, list, LIST_MAX - 1);
    list[size > 0 ? size : 0] = '\0';
    return size;
}

/* What an orphan leaves becomes ours before it shows as dead. So the dead do not count where the
 * list is the same after they were looked at. */
static bool is_still(const char *list)
{
    static char again[LIST_MAX];
    (void)read_children(again);
    return strcmp(list, again) == 0;
}

unsigned orphans_kill(pid_t runtime, const struct keepers *keepers, bool init,
                      struct rounds_refused *refused)
{
    static char list[LIST_MAX];
    ssize_t size = read_children(list);
    unsigned count = 0;
    unsigned dead = 0; /* same (number): it only has the list looked at once more */
    char *end = NULL;
    if (size < 0)
        return errno != ENOENT; /* it cannot be read now */
    for (char *at = list;; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            return count == 0 && dead > 0 ? !is_still(list) : count;
        if (pid == runtime || keepers_has(keepers, pid) || (init && !is_ours(keepers, pid)))
            continue;
        if (process_is_dead(pid)) /* whoever traces it keeps it from us */
            dead++;
        else /* its children come to us in their turn when it is dead */
            count += kill_orphan(keepers, pid, refused);
    }
}

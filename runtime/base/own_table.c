#include "base/own_table.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_UNSHARED 2u /* CLOSE_RANGE_UNSHARE: musl has neither the name nor the function */
#define FIRST (STDERR_FILENO + 1)
#define FEW 64 /* descriptors, which take no longer to close than to fetch one anew */

/* @return a copy of the process's descriptor, in the table of this thread; or -1. */
static int fetch(int number)
{
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0u);
    if (process < 0)
        return -1;
    int copy = (int)syscall(SYS_pidfd_getfd, process, number, 0u);
    (void)close(process); /* nothing to lose */
    return copy;
}

static bool may_fetch(int number)
{
    int copy = fetch(number);
    if (copy < 0)
        return false;
    (void)close(copy); /* nothing was written */
    return true;
}

/* Each descriptor below one that is kept is copied and closed: with ten thousand, for longer than
 * most of what a thread is for. An empty table takes no time. */
static int fetch_into_empty(int kept)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int copy;
    if (!may_fetch(kept) || syscall(SYS_close_range, FIRST, ~0u, CLOSE_UNSHARED) < 0)
        return -1;
    while ((copy = fetch(kept)) < 0) /* the host had memory and files for it a moment ago */
        (void)nanosleep(&pause, NULL);
    return copy;
}

int own_table_take(int kept)
{
    int copy = kept >= FEW ? fetch_into_empty(kept) : -1;
    if (copy >= 0)
        return copy;
    /* unshare(2), which gives a table too, is refused in many containers. */
    if (syscall(SYS_close_range, kept < FIRST ? FIRST : kept + 1, ~0u, CLOSE_UNSHARED) < 0)
        return -1;
    if (kept > FIRST) /* cannot fail: the table is there */
        (void)syscall(SYS_close_range, FIRST, kept - 1, 0u);
    return kept < FIRST ? STDERR_FILENO : kept;
}

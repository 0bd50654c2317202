#include "process/reaping.h"

#include <sys/wait.h>

#include "base/clock.h"
#include "process/realtime.h"

/* To look through so many takes no time. Through more, it is done once in such a pause for each so
 * many. */
#define AT_ONCE 1000u
#define PAUSE_NS (4 * NS_PER_MS)

static pid_t ask(pid_t which, int *status)
{
    pid_t pid = realtime_wait(which, status, WNOHANG | __WALL);
    return pid > 0 ? pid : 0; /* same (number swap): 1 is nobody's child, and 0 is 0 */
}

pid_t reaping_heed(struct reaping *reaping, pid_t pid, int *status)
{
    reaping->due = true;
    return ask(pid, status);
}

pid_t reaping_next(struct reaping *reaping, unsigned count, int *status)
{
    if (!reaping->due || clock_monotonic_ns() < reaping->look_ns)
        return 0;
    pid_t pid = ask(-1, status);
    if (pid > 0)
        return pid;
    reaping->due = false;
    reaping->look_ns = clock_monotonic_ns() + count / AT_ONCE * PAUSE_NS;
    return 0;
}

int64_t reaping_at_ns(const struct reaping *reaping)
{
    return reaping->due ? reaping->look_ns : TIME_NEVER;
}

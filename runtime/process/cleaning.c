#include "process/cleaning.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/orphans.h"

#define PAUSE_FIRST_NS NS_PER_MS
#define PAUSE_MOST_NS (50 * NS_PER_MS)

void cleaning_begin(struct cleaning *cleaning)
{
    cleaning->orphans = true;
    cleaning->pause_ns = PAUSE_FIRST_NS;
}

void cleaning_go_on(struct cleaning *cleaning, pid_t runtime, const struct keepers *keepers)
{
    struct rounds_refused refused = {.pid = 0};
    if (!cleaning->orphans)
        return;
    if (orphans_kill(runtime, keepers, getpid() == 1, &refused) == 0) {
        cleaning->orphans = cleaning->unkillable = false;
        return;
    }
    if (refused.pid != 0 && !cleaning->unkillable)
        log_warn("process %d of a tree cannot be killed (%s): it must be ended by hand",
                 (int)refused.pid, strerror(refused.error));
    cleaning->unkillable = cleaning->unkillable || refused.pid != 0;
    const int64_t next_ns = cleaning->pause_ns * 2;
    cleaning->pause_ns = next_ns < PAUSE_MOST_NS ? next_ns : PAUSE_MOST_NS;
}

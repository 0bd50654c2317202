#include "process/cleaning.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/orphans.h"

#define KEEPERS_PATIENCE_NS (2 * NS_PER_S)
#define PAUSE_FIRST_NS NS_PER_MS
#define PAUSE_MOST_NS (50 * NS_PER_MS)

void cleaning_await_keepers(struct cleaning *cleaning)
{
    cleaning->hurry_ns = clock_monotonic_ns() + KEEPERS_PATIENCE_NS;
}

void cleaning_hurry(struct cleaning *cleaning, const struct keepers *keepers)
{
    if (keepers->count == 0 || clock_monotonic_ns() < cleaning->hurry_ns)
        return;
    cleaning->hurry_ns = TIME_NEVER; /* SIGKILL is sent once */
    keepers_signal(keepers, SIGKILL);
    log_warn("a keeper did not end with its runtime: killed it");
}

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
    cleaning->pause_ns =
        cleaning->pause_ns * 2 < PAUSE_MOST_NS ? cleaning->pause_ns * 2 : PAUSE_MOST_NS;
}

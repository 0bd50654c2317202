#include "process/backoff.h"

#include "base/clock.h"

#define FIRST_NS (100 * NS_PER_MS)
#define CALM_NS (30 * NS_PER_S)

int64_t backoff_pause_ns(struct backoff *backoff, int64_t lasted_ns)
{
    int64_t pause_ns = lasted_ns > CALM_NS ? 0 : backoff->next_ns;
    backoff->next_ns = pause_ns == 0 ? FIRST_NS : pause_ns * 2;
    if (backoff->next_ns > BACKOFF_MOST_NS)
        backoff->next_ns = BACKOFF_MOST_NS;
    return pause_ns;
}

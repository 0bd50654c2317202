#include "process/deadman.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"

int deadman_open(struct deadman *deadman, struct crown_error *err)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    if (timer_create(CLOCK_BOOTTIME, &event, &deadman->timer) < 0)
        return error_set(err, ERROR_SYSTEM, "make a dead-man timer: %s",
                         errno == EAGAIN
                             ? "no more pending signals are allowed (ulimit -i, LimitSIGPENDING=)"
                             : strerror(errno));
    return 0;
}

void deadman_set(const struct deadman *deadman, int64_t at_ns)
{
    struct itimerspec spec = {{0, 0}, {0, 0}};
    if (at_ns != TIME_NEVER) {
        if (at_ns <= 0)
            at_ns = 1; /* zero would disarm */
        spec.it_value.tv_sec = at_ns / NS_PER_S;
        spec.it_value.tv_nsec = at_ns % NS_PER_S;
    }
    /* Fails for wrong arguments only: timer_settime(2). */
    int result = timer_settime(deadman->timer, TIMER_ABSTIME, &spec, NULL);
    assert(result == 0);
    (void)result;
}

void deadman_close(const struct deadman *deadman)
{
    (void)timer_delete(deadman->timer); /* fails for wrong arguments only */
}

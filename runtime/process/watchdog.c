#include "process/watchdog.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/signals.h"

#define ANSWER_PATIENCE_NS (100 * NS_PER_MS)

static bool is_asked(const struct watchdog *watchdog)
{
    return watchdog->answer_ns != TIME_NEVER;
}

void watchdog_start(struct watchdog *watchdog, pid_t runtime)
{
    pulse_start(&watchdog->pulse, runtime);
    watchdog->answer_ns = TIME_NEVER;
    watchdog->held[0] = '\0';
}

void watchdog_beat(struct watchdog *watchdog)
{
    pulse_beat(&watchdog->pulse);
    if (is_asked(watchdog))
        watchdog->held[0] = '\0'; /* saved at the last moment */
    watchdog->answer_ns = TIME_NEVER;
}

void watchdog_answer(struct watchdog *watchdog, const char *text)
{
    if (is_asked(watchdog))
        (void)snprintf(watchdog->held, sizeof(watchdog->held), "%s", text);
}

void watchdog_limit(struct watchdog *watchdog, int64_t limit_ns)
{
    pulse_limit(&watchdog->pulse, limit_ns);
}

/* First the deed, then the word. */
static void kill_it(struct watchdog *watchdog)
{
    (void)kill(watchdog->pulse.pid, SIGKILL); /* its parent has not reaped it: it is there */
    if (watchdog->held[0] == '\0')
        (void)snprintf(watchdog->held, sizeof(watchdog->held), "%s",
                       watchdog->pulse.stopped ? "stopped by a signal" : "no answer");
    log_warn("the runtime was silent for %.3g s: killed it (%s)",
             clock_seconds_from_ns(watchdog->pulse.limit_ns), watchdog->held);
    watchdog->answer_ns = TIME_NEVER;
    pulse_limit(&watchdog->pulse, 0); /* once */
}

void watchdog_look(struct watchdog *watchdog)
{
    if (is_asked(watchdog)) {
        if (clock_monotonic_ns() >= watchdog->answer_ns)
            kill_it(watchdog);
        return;
    }
    if (!pulse_look(&watchdog->pulse))
        return;
    watchdog->held[0] = '\0';
    if (watchdog->pulse.stopped || kill(watchdog->pulse.pid, SIGNAL_ASK) < 0)
        kill_it(watchdog);
    else
        watchdog->answer_ns = clock_monotonic_ns() + ANSWER_PATIENCE_NS;
}

int64_t watchdog_next_ns(const struct watchdog *watchdog)
{
    return is_asked(watchdog) ? watchdog->answer_ns : watchdog->pulse.next_ns;
}

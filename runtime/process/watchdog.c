#include "process/watchdog.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/figure.h"
#include "base/log.h"
#include "process/signals.h"

#define ANSWER_NS (100 * NS_PER_MS) /* so long before its end a silence is asked about, */
#define ANSWER_PART 8               /* or such a part of it where that is less */

static void wait_to_ask(struct watchdog *watchdog)
{
    int64_t limit_ns = watchdog->pulse.limit_ns;
    int64_t answer_ns = limit_ns / ANSWER_PART;
    watchdog->asked = false;
    pulse_mark(&watchdog->pulse, limit_ns - (answer_ns < ANSWER_NS ? answer_ns : ANSWER_NS));
}

void watchdog_start(struct watchdog *watchdog, pid_t runtime)
{
    pulse_start(&watchdog->pulse, runtime);
    wait_to_ask(watchdog);
    watchdog->held[0] = '\0';
}

void watchdog_beat(struct watchdog *watchdog)
{
    pulse_beat(&watchdog->pulse);
    if (watchdog->asked)
        watchdog->held[0] = '\0'; /* saved at the last moment */
    wait_to_ask(watchdog);
}

void watchdog_idle(struct watchdog *watchdog, int64_t until_ns)
{
    pulse_idle(&watchdog->pulse, until_ns);
}

void watchdog_heed(struct watchdog *watchdog)
{
    pulse_heed(&watchdog->pulse);
}

void watchdog_answer(struct watchdog *watchdog, const char *text)
{
    if (watchdog->asked)
        (void)snprintf(watchdog->held, sizeof(watchdog->held), "%s", text);
}

void watchdog_limit(struct watchdog *watchdog, int64_t limit_ns)
{
    pulse_limit(&watchdog->pulse, limit_ns);
    wait_to_ask(watchdog);
}

/* First the deed, then the word. */
static void kill_it(struct watchdog *watchdog)
{
    (void)kill(watchdog->pulse.pid, SIGKILL); /* its parent has not reaped it: it is there */
    if (watchdog->held[0] == '\0')
        (void)snprintf(watchdog->held, sizeof(watchdog->held), "%s",
                       watchdog->pulse.stopped ? "stopped by a signal" : "no answer");
    log_warn("the runtime was silent for %s s: killed it (%s)",
             figure_about(clock_seconds_from_ns(watchdog->pulse.limit_ns)).text, watchdog->held);
    watchdog_limit(watchdog, 0); /* once */
}

/* One that is stopped cannot answer. Whoever is asked late gets as much time for it. */
static void ask(struct watchdog *watchdog)
{
    struct pulse *pulse = &watchdog->pulse;
    int64_t left_ns = pulse->limit_ns - pulse->mark_ns;
    watchdog->asked = true;
    watchdog->held[0] = '\0';
    if (!pulse->stopped)
        (void)kill(pulse->pid, SIGNAL_ASK); /* its parent has not reaped it: it is there */
    pulse_mark(pulse, pulse->silent_ns + left_ns);
}

void watchdog_look(struct watchdog *watchdog)
{
    if (!pulse_look(&watchdog->pulse))
        return;
    if (watchdog->asked)
        kill_it(watchdog);
    else
        ask(watchdog);
}

int64_t watchdog_next_ns(const struct watchdog *watchdog)
{
    return watchdog->pulse.next_ns;
}

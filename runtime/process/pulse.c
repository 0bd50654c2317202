#include "process/pulse.h"

#include <time.h>

#include "base/clock.h"
#include "process/process_stat.h"

#define FIRST_LOOK 2 /* half of the limit after a beat: beats come more often than that */
/* Then an eighth of it each time, or as long as the mark is away, but never more often than this.
 */
#define LOOKS 8
#define LOOKS_MOST 100

/* @return the processor time that a process has had so far, in ns; 0 when it is gone. */
static int64_t processor_time(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return (int64_t)used.tv_sec * NS_PER_S + used.tv_nsec;
}

static void count_from(struct pulse *pulse, int64_t now_ns, int64_t pause_ns)
{
    pulse->looked_ns = now_ns;
    pulse->next_ns = pulse->limit_ns > 0 ? clock_add_ns(now_ns, pause_ns) : TIME_NEVER;
    pulse->processor_ns = processor_time(pulse->pid);
}

void pulse_start(struct pulse *pulse, pid_t pid)
{
    *pulse = (struct pulse){.pid = pid, .started_ns = clock_monotonic_ns()};
    pulse_beat(pulse);
}

void pulse_beat(struct pulse *pulse)
{
    pulse->last_beat_ns = clock_monotonic_ns();
    pulse->silent_ns = pulse->idle_until_ns = 0;
    count_from(pulse, pulse->last_beat_ns, pulse->limit_ns / FIRST_LOOK);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Silence is counted from its end on. */
static void let_be(struct pulse *pulse)
{
    pulse->silent_ns = 0;
    count_from(pulse, pulse->idle_until_ns, pulse->limit_ns / FIRST_LOOK);
}

void pulse_idle(struct pulse *pulse, int64_t until_ns)
{
    int64_t most_ns = clock_add_ns(clock_monotonic_ns(), PULSE_IDLE_MOST_NS);
    pulse->idle_until_ns = least(until_ns, most_ns);
    let_be(pulse);
}

static void look_at_state(struct pulse *pulse)
{
    char state = process_stat(pulse->pid).state;
    pulse->running = state == 'R';
    pulse->stopped = state == 'T' || state == 't';
}

void pulse_heed(struct pulse *pulse)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns >= pulse->idle_until_ns || pulse->looked_ns < pulse->idle_until_ns)
        return; /* it is looked at anyway */
    look_at_state(pulse);
    if (pulse->stopped)
        count_from(pulse, now_ns, pulse->limit_ns / FIRST_LOOK);
}

void pulse_limit(struct pulse *pulse, int64_t limit_ns)
{
    pulse->limit_ns = limit_ns;
    count_from(pulse, clock_monotonic_ns(), limit_ns / FIRST_LOOK);
}

void pulse_mark(struct pulse *pulse, int64_t mark_ns)
{
    pulse->mark_ns = mark_ns;
}

/* A runtime that spins has had a little less processor time than has passed. */
static int64_t pause_ns(const struct pulse *pulse)
{
    int64_t left_ns = least(pulse->mark_ns - pulse->silent_ns, pulse->limit_ns / LOOKS);
    return left_ns > pulse->limit_ns / LOOKS_MOST ? left_ns : pulse->limit_ns / LOOKS_MOST;
}

bool pulse_look(struct pulse *pulse)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns < pulse->next_ns)
        return false;
    look_at_state(pulse);
    if (now_ns < pulse->idle_until_ns && !pulse->stopped) {
        let_be(pulse);
        return false;
    }
    /* Who looks so late was held up itself, and perhaps all of the host was. */
    int64_t passed_ns = least(now_ns, pulse->next_ns + pulse->limit_ns / LOOKS) - pulse->looked_ns;
    int64_t worked_ns = processor_time(pulse->pid) - pulse->processor_ns;
    pulse->silent_ns += pulse->running ? least(worked_ns, passed_ns) : passed_ns;
    count_from(pulse, now_ns, pause_ns(pulse));
    return pulse->silent_ns >= pulse->mark_ns;
}

int64_t pulse_lasted_ns(const struct pulse *pulse)
{
    return pulse->last_beat_ns - pulse->started_ns;
}

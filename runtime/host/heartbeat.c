#include "host/heartbeat.h"

#include "base/clock.h"
#include "base/log.h"
#include "telemetry/notify.h"

#define SILENCE_DEFAULT_NS (2 * NS_PER_S)
#define BEATS_A_SILENCE 4

static void beat_due(struct loop_deadline *deadline)
{
    /* Marks that a beat is due; the turn that follows sends it, once the run queue is empty. */
    deadline->armed = false;
}

void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct link *link)
{
    *heartbeat = (struct heartbeat){.loop = loop,
                                    .link = link,
                                    .due = {.fire = beat_due},
                                    .silence_ns = SILENCE_DEFAULT_NS,
                                    .watchdog_ns = notify_watchdog_ns()};
}

void heartbeat_set_silence(struct heartbeat *heartbeat, int64_t silence_ns)
{
    heartbeat->silence_ns = silence_ns;
}

void heartbeat_arm(struct heartbeat *heartbeat, bool armed)
{
    struct crown_error err;
    if (link_fd(heartbeat->link) < 0 || heartbeat->armed == armed)
        return;
    heartbeat->armed = armed;
    if (link_arm(heartbeat->link, armed, heartbeat->silence_ns, &err) < 0)
        log_debug("%s", err.message);
}

static void beat(struct heartbeat *heartbeat)
{
    struct crown_error err;
    if (link_fd(heartbeat->link) >= 0)
        (void)link_heartbeat(heartbeat->link, &err); /* a missed beat is made up for by the next */
    int64_t now = clock_boottime_ns();
    if (heartbeat->watchdog_ns > 0 && now - heartbeat->watched_ns >= heartbeat->watchdog_ns / 2) {
        heartbeat->watched_ns = now;
        notify_send("WATCHDOG=1");
    }
    int64_t pause_ns = heartbeat->silence_ns / BEATS_A_SILENCE;
    if (heartbeat->watchdog_ns > 0 && heartbeat->watchdog_ns / 2 < pause_ns)
        pause_ns = heartbeat->watchdog_ns / 2;
    loop_at(heartbeat->loop, &heartbeat->due, clock_add_ns(now, pause_ns));
}

void heartbeat_turn(struct heartbeat *heartbeat)
{
    if (heartbeat->armed && heartbeat->silence_ns > 0 && !heartbeat->due.armed)
        beat(heartbeat);
}

#include "host/heartbeat.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "process/pulse.h"
#include "process/signals.h"
#include "telemetry/notices.h"
#include "telemetry/notify.h"

#define SILENCE_DEFAULT_NS (2 * NS_PER_S)
#define BEATS_A_SILENCE 4

/* A signal handler has no other way to find them. */
static struct heartbeat *asked;
static struct lua_vm *asked_lua;

/* So long at the most, and in time for the service manager. */
static int64_t in_time_ns(const struct heartbeat *heartbeat, int64_t most_ns)
{
    int64_t watched_ns = heartbeat->watchdog_ns / 2;
    return watched_ns > 0 && watched_ns < most_ns ? watched_ns : most_ns;
}

static int64_t pause_ns(const struct heartbeat *heartbeat)
{
    int64_t silence_ns = heartbeat->silence_ns > 0 ? heartbeat->silence_ns : SILENCE_DEFAULT_NS;
    return in_time_ns(heartbeat, silence_ns / BEATS_A_SILENCE);
}

/* How long nothing is to be done, as far as is known; 0 where it is not worth a word. */
static int64_t idle_ns(const struct heartbeat *heartbeat)
{
    int64_t most_ns = in_time_ns(heartbeat, PULSE_IDLE_MOST_NS);
    if (!heartbeat->armed || heartbeat->ending || heartbeat->busy ||
        loop_is_virtual(heartbeat->loop))
        return 0;
    int64_t next_ns = loop_next_ns(heartbeat->loop);
    int64_t left_ns = next_ns == TIME_NEVER ? most_ns : next_ns - loop_now(heartbeat->loop);
    left_ns = left_ns < most_ns ? left_ns : most_ns;
    return left_ns > pause_ns(heartbeat) ? left_ns : 0;
}

/* @param quiet_ns for how long there will be none: idle_ns; 0: a pause. */
static void beat(struct heartbeat *heartbeat, int64_t quiet_ns)
{
    struct crown_error err;
    int64_t now_ns = clock_coarse_ns();
    int64_t until_ns = quiet_ns > 0 ? clock_add_ns(clock_monotonic_ns(), quiet_ns) : 0;
    /* A missed beat is made up for by the next. */
    heartbeat->idle = link_fd(heartbeat->link) >= 0 &&
                      link_heartbeat(heartbeat->link, until_ns, &err) == 0 && quiet_ns > 0;
    heartbeat->busy = false;
    if (heartbeat->watchdog_ns > 0 &&
        now_ns - heartbeat->watched_ns >= heartbeat->watchdog_ns / 2) {
        heartbeat->watched_ns = now_ns;
        if (!notices_silent(now_ns))
            notify_send("WATCHDOG=1");
    }
    int64_t next_ns = heartbeat->idle ? quiet_ns : pause_ns(heartbeat);
    heartbeat->next_ns = clock_add_ns(now_ns, next_ns);
    if (heartbeat->armed || heartbeat->ending)
        loop_at(heartbeat->loop, &heartbeat->due, clock_add_ns(loop_now(heartbeat->loop), next_ns));
}

static void beat_due(struct loop_deadline *deadline)
{
    struct heartbeat *heartbeat = container_of(deadline, struct heartbeat, due);
    heartbeat->own = true;
    beat(heartbeat, idle_ns(heartbeat));
}

/* Before anything is done: from here on silence counts again. */
static void woken(void *context)
{
    struct heartbeat *heartbeat = context;
    if (heartbeat->idle)
        beat(heartbeat, 0);
}

static void progressed(void *context)
{
    heartbeat_progress(context);
}

void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct link *link)
{
    *heartbeat = (struct heartbeat){.loop = loop,
                                    .link = link,
                                    .due = {.fire = beat_due},
                                    .silence_ns = SILENCE_DEFAULT_NS,
                                    .watchdog_ns = notify_watchdog_ns()};
    loop_on_progress(loop, progressed, heartbeat);
    loop_on_wake(loop, woken, heartbeat);
}

static void answer(int signal)
{
    char text[WIRE_TEXT];
    int saved = errno;
    (void)signal;
    lua_vm_describe(asked_lua, text, sizeof(text));
    (void)link_held(asked->link, text); /* else the log says that there was no answer */
    errno = saved;
}

void heartbeat_answer(struct heartbeat *heartbeat, struct lua_vm *lua)
{
    asked = heartbeat;
    asked_lua = lua;
    (void)signal(SIGNAL_ASK, answer); /* fails for wrong arguments only */
}

void heartbeat_answer_no_more(void)
{
    (void)signal(SIGNAL_ASK, SIG_IGN);
}

void heartbeat_set_silence(struct heartbeat *heartbeat, int64_t silence_ns)
{
    heartbeat->silence_ns = silence_ns;
}

void heartbeat_arm(struct heartbeat *heartbeat, bool armed)
{
    struct crown_error err;
    if (!armed) {
        heartbeat->ending = false;
        loop_at_cancel(heartbeat->loop, &heartbeat->due);
    }
    if (link_fd(heartbeat->link) < 0 || heartbeat->armed == armed)
        return;
    heartbeat->armed = armed;
    if (link_arm(heartbeat->link, armed, heartbeat->silence_ns, &err) < 0)
        log_debug("%s", err.message);
    if (armed)
        beat(heartbeat, 0);
}

void heartbeat_ending(struct heartbeat *heartbeat)
{
    heartbeat->ending = true;
    beat(heartbeat, 0);
}

void heartbeat_progress(struct heartbeat *heartbeat)
{
    heartbeat->busy = heartbeat->busy || !heartbeat->own;
    heartbeat->own = false;
    if (clock_coarse_ns() >= heartbeat->next_ns)
        beat(heartbeat, 0);
}

#include "host/heartbeat.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "process/signals.h"
#include "telemetry/notices.h"
#include "telemetry/notify.h"

#define SILENCE_DEFAULT_NS (2 * NS_PER_S)
#define BEATS_A_SILENCE 4

/* A signal handler has no other way to find them. */
static struct heartbeat *asked;
static struct lua_vm *asked_lua;

static int64_t pause_ns(const struct heartbeat *heartbeat)
{
    int64_t silence_ns = heartbeat->silence_ns > 0 ? heartbeat->silence_ns : SILENCE_DEFAULT_NS;
    int64_t pause_ns = silence_ns / BEATS_A_SILENCE;
    return heartbeat->watchdog_ns > 0 && heartbeat->watchdog_ns / 2 < pause_ns
               ? heartbeat->watchdog_ns / 2
               : pause_ns;
}

static void beat(struct heartbeat *heartbeat)
{
    struct crown_error err;
    int64_t now_ns = clock_coarse_ns();
    if (link_fd(heartbeat->link) >= 0)
        (void)link_heartbeat(heartbeat->link, &err); /* a missed beat is made up for by the next */
    if (heartbeat->watchdog_ns > 0 &&
        now_ns - heartbeat->watched_ns >= heartbeat->watchdog_ns / 2) {
        heartbeat->watched_ns = now_ns;
        if (!notices_silent(now_ns))
            notify_send("WATCHDOG=1");
    }
    heartbeat->next_ns = now_ns + pause_ns(heartbeat);
    if (heartbeat->armed || heartbeat->ending)
        loop_at(heartbeat->loop, &heartbeat->due,
                clock_add_ns(loop_now(heartbeat->loop), pause_ns(heartbeat)));
}

static void beat_due(struct loop_deadline *deadline)
{
    beat(container_of(deadline, struct heartbeat, due));
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
        beat(heartbeat);
}

void heartbeat_ending(struct heartbeat *heartbeat)
{
    heartbeat->ending = true;
    beat(heartbeat);
}

void heartbeat_progress(struct heartbeat *heartbeat)
{
    if (clock_coarse_ns() >= heartbeat->next_ns)
        beat(heartbeat);
}

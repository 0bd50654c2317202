#include "candidate/silence.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/container.h"
#include "child/options.h"
#include "telemetry/notices.h"

static void wait_for_it(struct silence *silence)
{
    silence->until_ns = clock_add_ns(loop_now(silence->loop), silence->allowed_ns);
    loop_at(silence->loop, &silence->due, silence->until_ns);
}

static void heard(struct notice_socket *socket, const char *message)
{
    struct silence *silence = container_of(socket, struct silence, socket);
    notices_take(message);
    if (notice_has(message, "WATCHDOG=1") && loop_at_armed(&silence->due))
        wait_for_it(silence);
}

/* What it has said may still wait in the socket. Where this host or this runtime stood still, so
 * may the command have: it gets its time once more. */
static void fire(struct loop_deadline *due)
{
    struct silence *silence = container_of(due, struct silence, due);
    const int64_t late_ns = loop_now(silence->loop) - silence->until_ns;
    wait_for_it(silence);
    const int64_t until_ns = silence->until_ns;
    notice_socket_read(&silence->socket);
    if (silence->until_ns != until_ns || late_ns > silence->allowed_ns / 2)
        return;
    loop_at_cancel(silence->loop, &silence->due);
    silence->fell_silent(silence);
}

int silence_begin(struct silence *silence, struct loop *loop, const struct child_options *options,
                  struct crown_error *err)
{
    if (options->watchdog_ns == 0)
        return 0;
    silence->socket.heard = heard;
    silence->socket.sender = options->uid;
    if (notice_socket_open(&silence->socket, loop, err) < 0)
        return -1;
    silence->loop = loop;
    silence->allowed_ns = options->watchdog_ns;
    silence->due.fire = fire;
    (void)snprintf(silence->variable, sizeof(silence->variable), "NOTIFY_SOCKET=%s",
                   silence->socket.name);
    (void)snprintf(silence->interval, sizeof(silence->interval), "WATCHDOG_USEC=%" PRId64,
                   silence->allowed_ns / NS_PER_US);
    wait_for_it(silence);
    return 0;
}

void silence_end(struct silence *silence)
{
    if (silence->loop == NULL)
        return;
    loop_at_cancel(silence->loop, &silence->due);
    notice_socket_close(&silence->socket);
    silence->loop = NULL;
}

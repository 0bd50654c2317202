#include "postgres/ping.h"

#include "base/clock.h"
#include "base/container.h"

#define EVERY_LEAST_NS (1 * NS_PER_S)
#define EVERY_MOST_NS (10 * NS_PER_S)

static void answered(struct op *op)
{
    (void)op; /* that something came is known to the session, and so is that nothing did */
}

static void ask(struct postgres_ping *ping)
{
    postgres_request_free(ping->request);
    ping->request = postgres_request_new(ping->loop, "", NULL, 0);
    if (ping->request == NULL)
        return; /* another time */
    ping->request->op.wake = answered;
    ping->request->timeout_ns = ping->timeout_ns;
    postgres_session_send(ping->session, ping->request);
}

static void due(struct loop_deadline *deadline)
{
    struct postgres_ping *ping = container_of(deadline, struct postgres_ping, due);
    int64_t now = loop_now(ping->loop);
    int64_t at = clock_add_ns(postgres_session_heard_ns(ping->session), ping->every_ns);
    bool silent = at <= now && postgres_session_idle(ping->session);
    loop_at(ping->loop, &ping->due, at > now ? at : clock_add_ns(now, ping->every_ns));
    if (silent && !postgres_channels_empty(ping->channels))
        ask(ping);
}

void postgres_ping_init(struct postgres_ping *ping, struct loop *loop,
                        const struct postgres_channels *channels, int64_t timeout_ns)
{
    int64_t every_ns = timeout_ns < EVERY_MOST_NS / 2 ? 2 * timeout_ns : EVERY_MOST_NS;
    *ping =
        (struct postgres_ping){.loop = loop,
                               .channels = channels,
                               .due = {.fire = due},
                               .every_ns = every_ns > EVERY_LEAST_NS ? every_ns : EVERY_LEAST_NS,
                               .timeout_ns = timeout_ns};
}

void postgres_ping_start(struct postgres_ping *ping, struct postgres_session *session)
{
    ping->session = session;
    loop_at(ping->loop, &ping->due, clock_add_ns(loop_now(ping->loop), ping->every_ns));
}

void postgres_ping_stop(struct postgres_ping *ping)
{
    loop_at_cancel(ping->loop, &ping->due);
    postgres_request_free(ping->request);
    ping->request = NULL;
    ping->session = NULL;
}

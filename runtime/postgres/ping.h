/**
 * Signs of life of a connection that only listens: a peer can go on acknowledging what comes while
 * nobody behind it reads, as a load balancer that hangs does. It is asked when it has been silent
 * for a while; one that does not answer is given up by the session.
 */
#ifndef CROWN_POSTGRES_PING_H
#define CROWN_POSTGRES_PING_H

#include "loop/loop.h"
#include "postgres/channels.h"
#include "postgres/session.h"

/** The owner's; its fields are ping.c's. */
struct postgres_ping {
    struct loop *loop;
    const struct postgres_channels *channels;
    struct postgres_session *session; /* NULL: there is none */
    struct postgres_request *request; /* the last one, if any */
    struct loop_deadline due;
    int64_t every_ns, timeout_ns;
};

/**
 * @param channels nothing is asked while there are none.
 * @param timeout_ns the time for an answer; twice that of silence, and one second to ten, comes
 * before.
 */
void postgres_ping_init(struct postgres_ping *ping, struct loop *loop,
                        const struct postgres_channels *channels, int64_t timeout_ns);
/** From now on. */
void postgres_ping_start(struct postgres_ping *ping, struct postgres_session *session);
/** Before the session is freed. Fine where there is none. */
void postgres_ping_stop(struct postgres_ping *ping);

#endif

/**
 * Proof of work, for the supervisor and the service manager: while armed, a beat follows each turn
 * of the loop that emptied the run queue, a few times in the silence that is allowed.
 */
#ifndef CROWN_HOST_HEARTBEAT_H
#define CROWN_HOST_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "process/link.h"

struct heartbeat {
    struct loop *loop;
    struct link *link;
    struct loop_deadline due;
    bool armed;
    int64_t silence_ns;
    int64_t watchdog_ns, watched_ns; /* the service manager's; and when it last heard of us */
};

/** Unarmed, with the default silence of 2 s. */
void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct link *link);

/** How long the runtime may be silent before the supervisor restarts it; 0: for ever. Before the
 * first election. */
void heartbeat_set_silence(struct heartbeat *heartbeat, int64_t silence_ns);

/** From now on (or no longer) the runtime's death, or its silence, means: restart it. */
void heartbeat_arm(struct heartbeat *heartbeat, bool armed);

/** After each turn of the loop. */
void heartbeat_turn(struct heartbeat *heartbeat);

#endif

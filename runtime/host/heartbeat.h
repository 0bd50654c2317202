/**
 * Proof of progress, for the supervisor and the service manager: a beat follows a piece of work (a
 * slice of a task, a deadline, an answer that came), a few times in the silence that is allowed.
 * However much there is to do, a runtime that gets on with it is alive.
 */
#ifndef CROWN_HOST_HEARTBEAT_H
#define CROWN_HOST_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "lua/vm.h"
#include "process/link.h"

struct heartbeat {
    struct loop *loop;
    struct link *link;
    struct loop_deadline due; /* while armed or ending: nobody sleeps through a beat */
    bool armed;
    bool busy;       /* something was done since the last beat */
    bool own;        /* the piece of work that is about to be told is a beat */
    bool idle;       /* the supervisor was told that nothing is to be done until the next beat */
    bool ending;     /* told to end, which may take long: the supervisor counts its silence */
    int64_t next_ns; /* the next beat, on clock_coarse_ns */
    int64_t silence_ns;
    int64_t watchdog_ns, watched_ns; /* the service manager's; and when it last heard of us */
};

/** Unarmed, with the default silence of 2 s. From now on each piece of the loop's work may beat. */
void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct link *link);

/** To the supervisor's question what a silent runtime does, this is the answer from now on. */
void heartbeat_answer(struct heartbeat *heartbeat, struct lua_vm *lua);
/** Ends that; before `lua` is freed. */
void heartbeat_answer_no_more(void);

/** How long the runtime may be silent before the supervisor restarts it; 0: for ever. Before the
 * first election. */
void heartbeat_set_silence(struct heartbeat *heartbeat, int64_t silence_ns);

/** From now on (or no longer) the runtime's death, or its silence, means: restart it. */
void heartbeat_arm(struct heartbeat *heartbeat, bool armed);

/** The runtime was told to end: it beats, armed or not, until heartbeat_arm(false). */
void heartbeat_ending(struct heartbeat *heartbeat);

/** A piece of work was done. */
void heartbeat_progress(struct heartbeat *heartbeat);

#endif

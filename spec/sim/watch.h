/**
 * Watches one candidate from outside: its events, its actions, and what of its term exists. Says
 * which promise or rule of docs/safety.md it breaks.
 */
#ifndef CROWN_SIM_WATCH_H
#define CROWN_SIM_WATCH_H

#include "election/state.h"
#include "store.h"

/** What is remembered of a candidate. Instants are on its own clock. */
struct watch {
    bool won;           /* and not yet lost: the next runtime owes it */
    bool unsure;        /* a claim ended unknown and was not given back yet */
    int64_t stop_at_ns; /* of the term */
    int64_t kill_at_ns;
    int64_t sit_out_ns;     /* neither claim nor message before */
    int64_t claim_due_ns;   /* the holder's lease ends; TIME_NEVER: not told */
    int64_t refresh_due_ns; /* TIME_NEVER: none, or under way */
    int64_t refresh_ns;
    unsigned bars; /* what speaks against leading, as the candidate was told */
};

/** How things stand with it now. */
struct watched {
    const struct election *core;
    int64_t now_ns;
    enum store_verb in_flight; /* what its call asks of the store; STORE_NOTHING: it has none */
    bool exists;               /* something of its term */
    bool child;                /* of either role */
    bool leader_goes_on;       /* a leader's child that was not told to stop */
    bool stopped;              /* by its user */
};

/** A runtime begins: nothing is remembered but the `lost` that it owes. */
void watch_begin(struct watch *watch);

/** Before an event is taken, as the candidate is told it. */
void watch_told(struct watch *watch, const struct election_event *event);

/** Before an action is carried out. @return what is broken, or NULL. */
const char *watch_action(struct watch *watch, const struct watched *now,
                         const struct election_action *action);

/**
 * After an event was taken and its actions were carried out.
 * @param before the phase it came in.
 * @param answered what the call had asked that it answered, or STORE_NOTHING.
 * @param sent_ns when that was.
 * @return what is broken, or NULL.
 */
const char *watch_fed(struct watch *watch, const struct watched *now,
                      const struct election_event *event, enum election_phase before,
                      enum store_verb answered, int64_t sent_ns);

#endif

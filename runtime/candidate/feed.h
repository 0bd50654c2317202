/**
 * Where the pure core meets the world: events go in, and the core's actions are handed on, in
 * order, to whoever carries them out.
 */
#ifndef CROWN_CANDIDATE_FEED_H
#define CROWN_CANDIDATE_FEED_H

#include "base/scope.h"
#include "election/election.h"

struct candidate;

/** What the core's actions are handed to: candidate.c. */
struct candidate_hands {
    void (*carry_out)(struct candidate *candidate, const struct election_action *action);
    /** After each step, when its actions are carried out. */
    void (*stepped)(struct candidate *candidate);
    /** Once, when the core has said FINISH and everything before it is carried out. */
    void (*finish)(struct candidate *candidate);
    /** Once, when after that nothing of the election is left. */
    struct scope_owner scope;
};

extern const struct candidate_hands candidate_hands;

/** Steps the core; `event->at_ns` is set here. May be called while actions are carried out: then
 * the event waits its turn. */
void candidate_feed(struct candidate *candidate, const struct election_event *event);
void candidate_feed_type(struct candidate *candidate, enum election_event_type type);

/** @return the election's own scope, made where there is none: most of the time nothing is in it.
 * Not after FINISH. */
struct scope *candidate_scope(struct candidate *candidate);
/** Lets go of it where nothing is in it any more. */
void candidate_scope_leave(struct candidate *candidate);

#endif

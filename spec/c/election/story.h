/** Short stories of one candidate: what happens to it, and what it does. */
#ifndef CROWN_SPEC_C_ELECTION_STORY_H
#define CROWN_SPEC_C_ELECTION_STORY_H

#include "election/state.h"

#define STORY_TTL (10 * NS_PER_S)

/** One candidate, its clock, and what the last step said. */
struct story {
    struct election election;
    struct election_actions actions;
    int64_t now;
};

/** An election with a child, an orderly end, and two restarts within a minute. */
struct election_config story_config(void);

/** Begins: the first claim is under way. */
void story_begin(struct story *story, const struct election_config *with);
/** Begins, and is granted epoch 1: it leads. */
void story_lead(struct story *story, const struct election_config *with);

/** Something happens now; an answer is one to the call that is in flight. */
void story_feed(struct story *story, struct election_event event);
void story_feed_type(struct story *story, enum election_event_type type);
/** The call in flight is granted. */
void story_grant(struct story *story, uint64_t epoch);
/** The call in flight is denied; expires_ns is -1 where nothing is said of it. */
void story_deny(struct story *story, int64_t expires_ns, uint64_t epoch);
/** Moves the clock to the instant that the timer was armed for. */
void story_wait(struct story *story);
/** Waits until a refresh is called. */
void story_refresh(struct story *story);
/** The child and all else of the term are gone: `lost` is next. */
void story_gone(struct story *story);
/** A term that is over comes to its end: child, `lost` and release are done. */
void story_let_go(struct story *story);

/** @return whether the last step told of something. */
bool story_told(const struct story *story, enum election_notice notice);
/** @return the last step's first action of a type, or NULL. */
const struct election_action *story_find(const struct story *story, enum election_action_type type);

#endif

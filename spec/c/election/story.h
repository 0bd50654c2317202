/** Short stories of one candidate: what happens to it, and what it does. */
#ifndef CROWN_SPEC_C_ELECTION_STORY_H
#define CROWN_SPEC_C_ELECTION_STORY_H

#include "election/state.h"

#define STORY_TTL (10 * NS_PER_S)

/** One candidate, how it is configured, its clock, and what the last step said. */
struct story {
    struct election_config with;
    struct election election;
    uint32_t restarted[ELECTION_MAX_RESTARTS];
    struct election_actions actions;
    int64_t now;
};

extern struct story story;

/** cmocka's set-up: an election with a child, an orderly end, and two restarts within a minute, as
 * scenario_config has it. */
int story_open(void **state);
#define STORY_TEST(name) cmocka_unit_test_setup(name, story_open)

/** Begins, anew where it has begun before: the first claim is under way. */
void story_begin(void);
/** Begins, and is granted epoch 1: it leads. */
void story_lead(void);

/** Something happens now; an answer is one to the call that is in flight. */
void story_feed(struct election_event event);
void story_feed_type(enum election_event_type type);
/** The call in flight is granted. */
void story_grant(uint64_t epoch);
/** The call in flight is denied; expires_ns is -1 where nothing is said of it. */
void story_deny(int64_t expires_ns, uint64_t epoch);
/** Moves the clock to the instant that the timer was armed for. */
void story_wait(void);
/** Waits until a refresh is called. */
void story_refresh(void);
/** The child and all else of the term are gone: `lost` is next. */
void story_gone(void);
/** A term that is over comes to its end: child, `lost` and release are done. */
void story_let_go(void);

/** @return whether the last step told of something. */
bool story_told(enum election_notice notice);
/** @return the last step's first action of a type, or NULL. */
const struct election_action *story_find(enum election_action_type type);

#endif

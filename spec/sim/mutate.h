/**
 * Deliberate breaches of one rule each, in the world around the core or in the core's own state:
 * every one must be found.
 */
#ifndef CROWN_SIM_MUTATE_H
#define CROWN_SIM_MUTATE_H

#include "election/state.h"

#define MUTATIONS(X)                                                                               \
    X(NONE, "none")                                                                                \
    X(LATE_ANCHOR, "late-anchor")       /* R1: instants count from the reply, not the request */   \
    X(NO_MARGIN, "no-margin")           /* R1: instants count to the end of the store's TTL */     \
    X(FOREIGN_CLOCK, "foreign-clock")   /* R14: instants are the store's, read on our clock */     \
    X(PAST_FORGOTTEN, "past-forgotten") /* R1: a term by a queue counts from its claim */          \
    X(NO_ROOM, "no-room")               /* R2: a refresh that comes after the stop is accepted */  \
    X(UNKNOWN_IS_LOST, "unknown-is-lost") /* R3: no answer to a refresh ends the term */           \
    X(NO_LEAD, "no-lead")                 /* P1: the keeper kills at the deadline itself */        \
    X(LAZY_KEEPER, "lazy-keeper")         /* P1: the keeper leaves the kill to the runtime */      \
    X(NO_DEADMAN, "no-deadman")           /* P1: a stopped runtime's tasks live on */              \
    X(RELEASE_FIRST, "release-first")     /* R4: released while the child is stopping */           \
    X(EXEC_OUTLIVES, "exec-outlives")     /* R4: released while a command of the term runs */      \
    X(LOST_OUTLIVES, "lost-outlives")     /* R4: released while `lost` runs */                     \
    X(TREE_GIVEN_UP, "tree-given-up")     /* R4: released though the tree cannot be killed */      \
    X(ARMED_WHILE_RELEASING, "armed-while-releasing") /* R4: the dead-man timer hits a release */  \
    X(UNSURE_CLAIM, "unsure-claim")         /* R5: a claim that ended unknown is not released */   \
    X(UNSURE_MESSAGE, "unsure-message")     /* R5: nor one that was made inside handle_info */     \
    X(RELEASE_BY_TOKEN, "release-by-token") /* R6: a late release undoes a later claim */          \
    X(CLAIMS_UNORDERED, "claims-unordered") /* R6: a late claim overtakes a newer one */           \
    X(LATE_FOLLOWER, "late-follower")       /* R7: claims at a poll, not as the lease ends */      \
    X(EPOCH_REUSED, "epoch-reused")         /* R8: a store grants an epoch twice */                \
    X(NO_REFRESH_STEPPING, "no-refresh-while-stopping") /* R9 */                                   \
    X(LATE_LOSS, "late-loss")     /* R10: a definite loss is taken for no answer */                \
    X(STALE_CLAIM, "stale-claim") /* R11: a claim counts however long it took */                   \
    X(MESSAGE_ENDS_SIT_OUT, "message-ends-sit-out") /* R12 */                                      \
    X(FORGETTING_BELIEVED, "forgetting-believed")   /* R12: an old epoch is taken for new */       \
    X(GIVES_UP, "gives-up")                         /* R13: who is denied ends the election */     \
    X(BARRED_CLAIMS, "barred-claims") /* R16: a candidate that may not lead claims all the same */ \
    X(BARRED_LEADS, "barred-leads")   /* R16: a leader that may not lead any more goes on */       \
    X(NEVER_ALLOWED, "never-allowed") /* R16: a candidate that may lead again does not claim */

#define MUTATION_ENUM(name, text) MUTATE_##name,
enum mutation { MUTATIONS(MUTATION_ENUM) MUTATION_COUNT };

/** @return the mutation's word. */
const char *mutation_name(enum mutation mutation);
/** @return the mutation of this name, or MUTATION_COUNT. */
enum mutation mutation_find(const char *name);

/** Breaks a core's rule before it takes an event, which may become another one. */
void mutate_before(enum mutation mutation, struct election *core, struct election_event *event);
/** Breaks a core's rule after it took an event. */
void mutate_after(enum mutation mutation, struct election *core, int64_t now_ns);

/** What an instant could be counted on by mistake. */
struct mutate_clock {
    int64_t now_ns, sent_ns; /* the candidate's clock, and when it asked */
    int64_t foreign_ns;      /* another's clock */
    int64_t ttl_ns;          /* the store's */
};
/** @return an instant of a lease as a keeper is told it. */
int64_t mutate_instant(enum mutation mutation, const struct election *core, int64_t at_ns,
                       const struct mutate_clock *clock);

#endif

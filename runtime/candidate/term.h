/**
 * A term's life here, from begin to gone: one scope owns all that it has started (the `won` handler
 * and its tasks, the leader's command, commands of crown.exec, watches, listeners, subscriptions),
 * a second one all that `lost` has. The functions follow the core's actions in their order; what is
 * told by an event comes back through feed.h.
 */
#ifndef CROWN_CANDIDATE_TERM_H
#define CROWN_CANDIDATE_TERM_H

#include "base/scope.h"
#include "election/election.h"

struct candidate;

/** Before the first. Where nothing can ever run in a term there is nothing of it here, and the
 * functions below only answer. @return 0, or -1 when memory is out. */
int term_init(struct candidate *candidate);
/** After the last. */
void term_free(struct candidate *candidate);

/** What the processes of the next term keep open. */
void term_set_hold(struct candidate *candidate, const struct scope_hold *hold);

/** SET_DEADLINE: before the term begins, and with each refresh of its lease. */
void term_set_instants(struct candidate *candidate, const struct election_action *action);

/** RUN_WON: what is started from now on belongs to the term. WON_FAILED may follow. */
void term_begin(struct candidate *candidate, uint64_t epoch);

/** `won` runs now. A term that is over before has no `lost` either. */
void term_told(struct candidate *candidate);

/** CLOSE_TERM: all of it begins to end. TERM_GONE follows when the last of it is gone: tasks at
 * their next wait, commands when their keepers say that the tree is. */
void term_close(struct candidate *candidate);

/** RUN_LOST, at `action->until_ns` at the latest to be followed by term_close_lost. LOST_DONE
 * follows when `lost` has returned and nothing that it started is left. */
void term_run_lost(struct candidate *candidate, const struct election_action *action);
void term_close_lost(struct candidate *candidate);

/** CLEAR_DEADLINE: it is gone. Also at any other time, for a runtime that goes down. */
void term_forget(struct candidate *candidate);

#endif

/**
 * The user's handlers. Each is a task; how it ended comes back as an event.
 */
#ifndef CROWN_CANDIDATE_HANDLERS_H
#define CROWN_CANDIDATE_HANDLERS_H

#include <stdint.h>

#include "base/scope.h"
#include "election/election.h"
#include "lua/task.h"

struct candidate;

/** The campaign handler sees each claim and refresh; it neither delays nor decides them. */
void handlers_campaign(struct candidate *candidate);
/** Somebody leads now, perhaps this candidate; it neither delays nor decides anything. */
void handlers_leader(struct candidate *candidate, const char *leader, uint64_t epoch);
/** Runs in the term's scope. WON_FAILED follows where it raises, or cannot run. */
void handlers_won(struct candidate *candidate, uint64_t epoch);

/** @param done called with the candidate; it calls handlers_lost_done. @return NULL: there is no
 * such handler. */
struct task *handlers_lost(struct candidate *candidate, enum election_reason reason,
                           struct scope *scope, task_done *done);
/** Tells where it failed. */
void handlers_lost_done(struct task *task, enum task_outcome outcome, int nresults, void *context);
/** Tells that it had to be dropped. */
void handlers_lost_late(struct candidate *candidate);

#endif

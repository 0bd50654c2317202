/**
 * Oracle calls, one at a time: each is a task that runs `object:perform(kind, …)`, whose verdict
 * becomes an event; a refresh and a release may be a refresher's (refresher.h).
 */
#ifndef CROWN_CANDIDATE_ORACLE_CALL_H
#define CROWN_CANDIDATE_ORACLE_CALL_H

#include "election/election.h"

struct candidate;

/** @param action one of CALL_CLAIM, CALL_REFRESH, CALL_INFO, CALL_ABDICATE. */
void oracle_call(struct candidate *candidate, const struct election_action *action);
/** Drops the call under way, and tells so where its time was up. */
void oracle_call_cancel(struct candidate *candidate);
/** Tells that the lease which the last call was granted left no time to lead. */
void oracle_call_late(struct candidate *candidate);
/** Drops the call under way, if there is one, without a word. */
void oracle_call_drop(struct candidate *candidate);

#endif

/**
 * The user's handlers. Each is a task; how it ended comes back as an event.
 */
#ifndef CROWN_CANDIDATE_HANDLERS_H
#define CROWN_CANDIDATE_HANDLERS_H

#include <stdint.h>

#include "election/election.h"

struct candidate;

/** The campaign handler sees each claim and refresh; it neither delays nor decides them. */
void handlers_campaign(struct candidate *candidate);
void handlers_won(struct candidate *candidate, uint64_t epoch);
void handlers_lost(struct candidate *candidate, enum election_reason reason);
/** `lost` has had its time: whatever still runs of it is dropped. */
void handlers_lost_over(struct candidate *candidate);

#endif

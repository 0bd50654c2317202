/**
 * What a runtime owes to the one before it: that may have led an election and died. Its end is told
 * as the election begins here, and `lost` runs before anything else.
 */
#ifndef CROWN_CANDIDATE_OWED_H
#define CROWN_CANDIDATE_OWED_H

struct candidate;

/** Feeds START, or START_OWING. */
void owed_start(struct candidate *candidate);
/** The election is stopped before it has begun: START_OWING is fed, or nothing. */
void owed_stop(struct candidate *candidate);

#endif

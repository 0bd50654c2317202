/**
 * What speaks against leading here, beside the store, in words: the core only knows which of its
 * bars are set. Most candidates have none, and need no memory for them.
 */
#ifndef CROWN_CANDIDATE_BARS_H
#define CROWN_CANDIDATE_BARS_H

#include <stdint.h>

#include "election/election.h"

struct candidate;

/** Bars a candidate, before it has started or at any time. @param why in words, copied; where the
 * bar is set already they replace the earlier ones. */
void bars_bar(struct candidate *candidate, enum election_bar bar, const char *why);
/** Takes a bar away. */
void bars_allow(struct candidate *candidate, enum election_bar bar);
void bars_free(struct candidate *candidate);

/** @return the words of a bar that is set; else NULL. */
const char *bars_why(const struct candidate *candidate, enum election_bar bar);
/** @return since when it is set. */
int64_t bars_since(const struct candidate *candidate, enum election_bar bar);

/** @return whether no more messages for handle_info are kept: it follows and may not claim, and
 * those that wait already have its oracle look when it may. */
bool bars_heard_enough(const struct candidate *candidate);

#endif

/**
 * Who leads, as far as this candidate knows, itself included.
 */
#ifndef CROWN_CANDIDATE_LEADER_H
#define CROWN_CANDIDATE_LEADER_H

#include <stdint.h>

struct candidate;

/** What the store said last. @param node NULL: nobody. @param expires_ns from now; negative: not
 * said. */
void leader_remember(struct candidate *candidate, const char *node, uint64_t epoch,
                     int64_t expires_ns);

/** The own term is over: from here on nobody is known to lead, where nobody else is named. */
void leader_forget_own(struct candidate *candidate);

/** Tells the event and the handler of a new leader, once for each. */
void leader_tell(struct candidate *candidate);

#endif

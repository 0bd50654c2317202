/**
 * Whether the store answers.
 */
#ifndef CROWN_CANDIDATE_OUTAGE_H
#define CROWN_CANDIDATE_OUTAGE_H

struct candidate;

/** Told when an outage begins and when its reason changes, not at every try. */
void outage_report(struct candidate *candidate, const char *function, const char *message);

/** The store has answered: the next failure is a new one. */
void outage_over(struct candidate *candidate);

#endif

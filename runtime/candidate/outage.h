/**
 * Whether the store answers.
 */
#ifndef CROWN_CANDIDATE_OUTAGE_H
#define CROWN_CANDIDATE_OUTAGE_H

struct candidate;

/**
 * Tells why the store gives no answer: each reason once in an outage, and sixteen at most.
 * @param code what the oracle says besides; "usage": the user is to mend something; "store": the
 * store has answered, and that is its answer. NULL: nothing.
 */
void outage_report(struct candidate *candidate, const char *function, const char *message,
                   const char *code);

/** The store has answered: the next failure is a new one. */
void outage_over(struct candidate *candidate);

/** Frees what is known of an outage. */
void outage_forget(struct candidate *candidate);

#endif

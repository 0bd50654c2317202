/**
 * How elections begin to claim, in the order in which they come to it: so many in a turn of the
 * loop, and so many at once. A claim is a task with a Lua thread of its own, so a hundred thousand
 * that begin at once, as they are made, as their time comes, or as the store tells of them, would
 * take the more memory, for ever, since it does not come back in one piece.
 */
#ifndef CROWN_CANDIDATE_STARTS_H
#define CROWN_CANDIDATE_STARTS_H

#include <stdbool.h>

struct candidate;
struct candidate_env;
struct starts;

/** @return NULL when memory is out. */
struct starts *starts_new(struct candidate_env *env);
void starts_free(struct starts *starts);

/** Has an election begin, as owed_start says, now or in one of the next turns. */
void starts_add(struct candidate *candidate);
/** The same of TIMER. What is no claim is not put off, nor that of a few elections. */
void starts_due(struct candidate *candidate);
/** The same of MESSAGE: one more is in its mailbox. */
void starts_tell(struct candidate *candidate);
/** It is not to begin any more. */
void starts_forget(struct candidate *candidate);

/** A claim begins, or is over. */
void starts_asking(struct starts *starts, bool on);

#endif

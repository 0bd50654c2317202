/**
 * How elections begin: in the order of their making, so many in a turn of the loop. A claim is a
 * task with a Lua thread of its own, so a hundred thousand that begin at once would take the more
 * memory, for ever, since it does not come back in one piece.
 */
#ifndef CROWN_CANDIDATE_STARTS_H
#define CROWN_CANDIDATE_STARTS_H

struct candidate;
struct candidate_env;
struct starts;

/** @return NULL when memory is out. */
struct starts *starts_new(struct candidate_env *env);
void starts_free(struct starts *starts);

/** Has an election begin: START is fed to it, now or in one of the next turns. */
void starts_add(struct starts *starts, struct candidate *candidate);
/** It is not to begin any more. */
void starts_forget(struct candidate *candidate);

#endif

/**
 * The elections of this runtime, by name; of one election, each candidate by its node.
 */
#ifndef CROWN_CANDIDATE_CANDIDATES_H
#define CROWN_CANDIDATE_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "election/election.h"

struct candidate;
struct candidates;
struct loop;

/** @return NULL when memory is out. */
struct candidates *candidates_new(void);
/** Frees the table, which must be empty. */
void candidates_free(struct candidates *candidates);

/** @return 0, or -1 with ERROR_USAGE where the election has a candidate of this node. */
int candidates_add(struct candidates *candidates, struct candidate *candidate,
                   struct crown_error *err);
void candidates_remove(struct candidates *candidates, struct candidate *candidate);
/** @return one of the candidates of an election, or NULL; candidates_next leads to the others. */
struct candidate *candidates_find(const struct candidates *candidates, const char *name);
struct candidate *candidates_next(const struct candidate *candidate);
unsigned candidates_count(const struct candidates *candidates);

/** Calls `visit` for each election in the order of their making; it may remove the one it is given,
 * and no other. */
void candidates_each(const struct candidates *candidates,
                     void (*visit)(struct candidate *candidate, void *context), void *context);
/** Calls `visit` for each election, some of them now and the others in the next turns of the loop,
 * whatever is added or removed meanwhile. What an earlier call has left to do is not done. */
void candidates_visit(struct candidates *candidates, struct loop *loop,
                      void (*visit)(struct candidate *candidate, void *context), void *context);
/** @return whether elections are still to be visited. */
bool candidates_visiting(const struct candidates *candidates);
/** As candidates_each, until `visit`, which removes none, returns false. */
void candidates_while(const struct candidates *candidates,
                      bool (*visit)(struct candidate *candidate, void *context), void *context);

/** Notes the phase that an election is shown in. */
void candidates_show(struct candidates *candidates, struct candidate *candidate,
                     enum election_phase phase);
/** @return how many are shown as leading. */
unsigned candidates_leading(const struct candidates *candidates);

/** Notes that what the status of an election shows may have changed. */
void candidates_touch(struct candidates *candidates, struct candidate *candidate);

/** @return the stamp of the last change; it only grows. From the first call on changes are noted.
 */
uint64_t candidates_stamp(struct candidates *candidates);

/**
 * Calls `visit`, which removes none, for each election that has changed since a stamp, in the order
 * of the changes. It costs as much as there are such.
 * @return false where that cannot be told, since one was removed after it, none was noted yet, or
 * there are more than `most`: then nothing was called.
 */
bool candidates_changed(const struct candidates *candidates, uint64_t since, unsigned most,
                        void (*visit)(struct candidate *candidate, void *context), void *context);

#endif

/**
 * The elections of this runtime, by name.
 */
#ifndef CROWN_CANDIDATE_CANDIDATES_H
#define CROWN_CANDIDATE_CANDIDATES_H

#include <stdbool.h>

#include "base/error.h"

struct candidate;
struct candidates;

/** @return NULL when memory is out. */
struct candidates *candidates_new(void);
/** Frees the table, which must be empty. */
void candidates_free(struct candidates *candidates);

/** @return 0, or -1 with ERROR_USAGE where the name is taken. */
int candidates_add(struct candidates *candidates, struct candidate *candidate,
                   struct crown_error *err);
void candidates_remove(struct candidates *candidates, struct candidate *candidate);
struct candidate *candidates_find(const struct candidates *candidates, const char *name);
unsigned candidates_count(const struct candidates *candidates);

/** Calls `visit` for each election in the order of their making; it may remove the one it is given,
 * and no other. */
void candidates_each(const struct candidates *candidates,
                     void (*visit)(struct candidate *candidate, void *context), void *context);

#endif

/**
 * The elections of this runtime, by name.
 */
#ifndef CROWN_CANDIDATE_CANDIDATES_H
#define CROWN_CANDIDATE_CANDIDATES_H

#include <stdbool.h>

#include "base/error.h"

struct candidate;
struct registry;

struct registry *registry_new(void);
/** Frees the registry; whatever is still in it is closed first, without a word to the stores. */
void registry_free(struct registry *registry);

/** @return 0, or -1 with ERROR_USAGE where the name is taken. */
int registry_add(struct registry *registry, struct candidate *candidate, struct crown_error *err);
void registry_remove(struct registry *registry, struct candidate *candidate);
struct candidate *registry_find(const struct registry *registry, const char *name);
unsigned registry_count(const struct registry *registry);

/** Stops every election in order; each finishes by itself when its child is gone and its lease
 * released. */
void registry_stop_all(struct registry *registry);

/** Calls `visit` for each election in the order of their making; it must not add or remove any. */
void registry_each(const struct registry *registry,
                   void (*visit)(struct candidate *candidate, void *context), void *context);

#endif

#include "candidate/candidates.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "candidate/state.h"

struct candidates {
    void *by_name; /* tsearch(3) tree */
    struct list list;
    unsigned count;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct candidate *)a)->name, ((const struct candidate *)b)->name);
}

struct candidates *candidates_new(void)
{
    struct candidates *candidates = calloc(1, sizeof(*candidates));
    if (candidates != NULL)
        list_init(&candidates->list);
    return candidates;
}

void candidates_free(struct candidates *candidates)
{
    assert(candidates == NULL || candidates->count == 0);
    free(candidates);
}

int candidates_add(struct candidates *candidates, struct candidate *candidate,
                   struct crown_error *err)
{
    struct candidate **found = tsearch(candidate, &candidates->by_name, compare);
    if (found == NULL)
        return error_set(err, ERROR_MEMORY, "elect '%s': out of memory", candidate->name);
    if (*found != candidate)
        return error_set(err, ERROR_USAGE, "name: there is already an election '%s' here",
                         candidate->name);
    list_append(&candidates->list, &candidate->link);
    candidates->count++;
    return 0;
}

void candidates_remove(struct candidates *candidates, struct candidate *candidate)
{
    (void)tdelete(candidate, &candidates->by_name, compare); /* it is there: candidates_add */
    list_remove(&candidate->link);
    candidates->count--;
}

struct candidate *candidates_find(const struct candidates *candidates, const char *name)
{
    const struct candidate key = {.name = (char *)name};
    struct candidate **found = tfind(&key, &candidates->by_name, compare);
    return found != NULL ? *found : NULL;
}

unsigned candidates_count(const struct candidates *candidates)
{
    return candidates->count;
}

void candidates_each(const struct candidates *candidates,
                     void (*visit)(struct candidate *candidate, void *context), void *context)
{
    struct list_node *next;
    for (struct list_node *node = list_first(&candidates->list); node != NULL; node = next) {
        next = list_next(&candidates->list, node);
        visit(container_of(node, struct candidate, link), context);
    }
}

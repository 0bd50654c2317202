#include "candidate/candidates.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "candidate/internal.h"

struct registry {
    void *by_name; /* tsearch(3) tree of candidates */
    struct list candidates;
    unsigned count;
};

static struct candidate *of_node(struct list_node *node)
{
    return container_of(node, struct candidate, link);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct candidate *)a)->name, ((const struct candidate *)b)->name);
}

struct registry *registry_new(void)
{
    struct registry *registry = calloc(1, sizeof(*registry));
    if (registry != NULL)
        list_init(&registry->candidates);
    return registry;
}

void registry_free(struct registry *registry)
{
    if (registry == NULL)
        return;
    while (registry->count > 0)
        candidate_close(of_node(list_first(&registry->candidates)));
    free(registry);
}

int registry_add(struct registry *registry, struct candidate *candidate, struct crown_error *err)
{
    struct candidate **found = tsearch(candidate, &registry->by_name, compare);
    if (found == NULL)
        return error_set(err, ERROR_MEMORY, "elect '%s': out of memory", candidate->name);
    if (*found != candidate)
        return error_set(err, ERROR_USAGE, "name: there is already an election '%s' here",
                         candidate->name);
    list_append(&registry->candidates, &candidate->link);
    registry->count++;
    return 0;
}

void registry_remove(struct registry *registry, struct candidate *candidate)
{
    (void)tdelete(candidate, &registry->by_name, compare); /* it is there: registry_add put it */
    list_remove(&candidate->link);
    registry->count--;
}

struct candidate *registry_find(const struct registry *registry, const char *name)
{
    const struct candidate key = {.name = (char *)name};
    struct candidate **found = tfind(&key, &registry->by_name, compare);
    return found != NULL ? *found : NULL;
}

unsigned registry_count(const struct registry *registry)
{
    return registry->count;
}

void registry_stop_all(struct registry *registry)
{
    /* Stopping may finish an election at once, which takes it out of the list: so remember the
     * next. */
    struct list_node *next;
    for (struct list_node *node = list_first(&registry->candidates); node != NULL; node = next) {
        next = list_next(&registry->candidates, node);
        candidate_stop(of_node(node));
    }
}

void registry_each(const struct registry *registry,
                   void (*visit)(struct candidate *candidate, void *context), void *context)
{
    list_each(node, &registry->candidates) visit(of_node(node), context);
}

#include "candidate/candidates.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "candidate/state.h"
#include "candidate/status.h"
#include "loop/loop.h"

#define VISITED_A_TURN 128 /* some 4 ms: stores answer the first ones meanwhile */

struct candidates {
    void *by_name; /* tsearch(3) tree */
    struct list list;
    struct list_node *next; /* in the list: who is visited next; NULL: nobody */
    struct loop *loop;      /* that the visitor runs in; NULL: it never has */
    struct loop_job visitor;
    void (*visit)(struct candidate *candidate, void *context);
    void *context;
    struct list recent; /* what changed last stands last */
    uint64_t stamp;     /* of the last change */
    uint64_t removed;   /* of the last removal, or of the beginning of all this */
    bool watched;       /* somebody has asked for a stamp, so changes are noted */
    unsigned count, leading;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct candidate *)a)->name, ((const struct candidate *)b)->name);
}

struct candidates *candidates_new(void)
{
    struct candidates *candidates = calloc(1, sizeof(*candidates));
    if (candidates != NULL) {
        list_init(&candidates->list);
        list_init(&candidates->recent);
    }
    return candidates;
}

void candidates_free(struct candidates *candidates)
{
    assert(candidates == NULL || candidates->count == 0);
    if (candidates != NULL && candidates->loop != NULL)
        loop_unpost(candidates->loop, &candidates->visitor);
    free(candidates);
}

/* @return whether one of an election's candidates, from `first` on, takes part as `node`. */
static bool has_node(const struct candidate *first, const char *node)
{
    for (const struct candidate *one = first; one != NULL; one = one->twin) {
        if (strcmp(candidate_node(one), node) == 0)
            return true;
    }
    return false;
}

int candidates_add(struct candidates *candidates, struct candidate *candidate,
                   struct crown_error *err)
{
    struct candidate **found = tsearch(candidate, &candidates->by_name, compare);
    if (found == NULL)
        return error_set(err, ERROR_MEMORY, "elect '%s': out of memory", candidate->name);
    struct candidate *first = *found; /* the tree holds it; the others stand behind it */
    if (first != candidate && has_node(first, candidate_node(candidate)))
        return error_set(err, ERROR_USAGE,
                         "name: there is already an election '%s' here; several candidates of one "
                         "need a node of their own each: node = \"w2\"",
                         candidate->name);
    if (first != candidate) {
        candidate->twin = first->twin;
        first->twin = candidate;
    }
    list_append(&candidates->list, &candidate->link);
    list_append(&candidates->recent, &candidate->recent);
    candidates->count++;
    candidates_touch(candidates, candidate);
    return 0;
}

void candidates_remove(struct candidates *candidates, struct candidate *candidate)
{
    struct candidate **found = tfind(candidate, &candidates->by_name, compare);
    if (*found != candidate) {
        struct candidate *before = *found;
        while (before->twin != candidate)
            before = before->twin;
        before->twin = candidate->twin;
    } else if (candidate->twin != NULL) {
        *found = candidate->twin; /* of the same name, so it stands in the same place */
    } else {
        (void)tdelete(candidate, &candidates->by_name, compare); /* it is there: candidates_add */
    }
    if (candidates->next == &candidate->link)
        candidates->next = list_next(&candidates->list, &candidate->link);
    candidates_show(candidates, candidate, ELECTION_FINISHED);
    list_remove(&candidate->link);
    list_remove(&candidate->recent);
    candidates->removed = ++candidates->stamp;
    candidates->count--;
}

struct candidate *candidates_find(const struct candidates *candidates, const char *name)
{
    const struct candidate key = {.name = name};
    struct candidate **found = tfind(&key, &candidates->by_name, compare);
    return found != NULL ? *found : NULL;
}

struct candidate *candidates_next(const struct candidate *candidate)
{
    return candidate->twin;
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

static void visit_some(struct loop_job *job)
{
    struct candidates *candidates = container_of(job, struct candidates, visitor);
    for (int left = VISITED_A_TURN; candidates->next != NULL && left > 0; left--) {
        struct candidate *one = container_of(candidates->next, struct candidate, link);
        candidates->next = list_next(&candidates->list, candidates->next);
        candidates->visit(one, candidates->context);
    }
    if (candidates->next != NULL)
        loop_defer(candidates->loop, job);
}

void candidates_visit(struct candidates *candidates, struct loop *loop,
                      void (*visit)(struct candidate *candidate, void *context), void *context)
{
    candidates->next = list_first(&candidates->list);
    candidates->loop = loop;
    candidates->visitor.run = visit_some;
    candidates->visit = visit;
    candidates->context = context;
    visit_some(&candidates->visitor);
}

bool candidates_visiting(const struct candidates *candidates)
{
    return candidates->next != NULL;
}

void candidates_while(const struct candidates *candidates,
                      bool (*visit)(struct candidate *candidate, void *context), void *context)
{
    list_each(node, &candidates->list)
    {
        if (!visit(container_of(node, struct candidate, link), context))
            return;
    }
}

void candidates_show(struct candidates *candidates, struct candidate *candidate,
                     enum election_phase phase)
{
    if (candidate->shown_phase == ELECTION_LEADING)
        candidates->leading--;
    if (phase == ELECTION_LEADING)
        candidates->leading++;
    candidate->shown_phase = phase;
}

unsigned candidates_leading(const struct candidates *candidates)
{
    return candidates->leading;
}

void candidates_touch(struct candidates *candidates, struct candidate *candidate)
{
    uint64_t stamp = ++candidates->stamp;
    if (!candidates->watched)
        return; /* mostly: to note it would touch the memory of two others */
    candidate->stamp = stamp;
    list_remove(&candidate->recent);
    list_append(&candidates->recent, &candidate->recent);
}

uint64_t candidates_stamp(struct candidates *candidates)
{
    if (!candidates->watched)
        candidates->removed = candidates->stamp;
    candidates->watched = true;
    return candidates->stamp;
}

/* The first that has changed since, or NULL; `count` of them. */
static struct list_node *first_changed(const struct candidates *candidates, uint64_t since,
                                       unsigned *count)
{
    struct list_node *first = NULL;
    *count = 0;
    for (struct list_node *node = list_last(&candidates->recent);
         node != NULL && container_of(node, struct candidate, recent)->stamp > since;
         node = list_previous(&candidates->recent, node)) {
        first = node;
        (*count)++;
    }
    return first;
}

bool candidates_changed(const struct candidates *candidates, uint64_t since, unsigned most,
                        void (*visit)(struct candidate *candidate, void *context), void *context)
{
    unsigned count;
    if (!candidates->watched || since < candidates->removed || since > candidates->stamp)
        return false;
    struct list_node *node = first_changed(candidates, since, &count);
    if (count > most)
        return false;
    for (; node != NULL; node = list_next(&candidates->recent, node))
        visit(container_of(node, struct candidate, recent), context);
    return true;
}

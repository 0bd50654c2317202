#include "candidate/deadmen.h"

#include <stdlib.h>

#include "base/clock.h"
#include "process/deadman.h"

struct deadmen {
    struct heap heap;
    struct deadman timer;
    int64_t armed_ns;
};

struct deadmen *deadmen_new(struct crown_error *err)
{
    struct deadmen *deadmen = calloc(1, sizeof(*deadmen));
    if (deadmen == NULL) {
        (void)error_set(err, ERROR_MEMORY, "make a dead-man timer: out of memory");
        return NULL;
    }
    deadmen->armed_ns = TIME_NEVER;
    if (deadman_open(&deadmen->timer, err) < 0) {
        free(deadmen);
        return NULL;
    }
    return deadmen;
}

void deadmen_free(struct deadmen *deadmen)
{
    if (deadmen == NULL)
        return;
    deadman_close(&deadmen->timer);
    heap_free(&deadmen->heap);
    free(deadmen);
}

void deadmen_set(struct deadmen *deadmen, struct heap_node *term, int64_t at_ns)
{
    if (at_ns == TIME_NEVER)
        heap_remove(&deadmen->heap, term);
    else if (heap_set(&deadmen->heap, term, at_ns) < 0)
        abort(); /* better restarted than without the promise */
    struct heap_node *top = heap_top(&deadmen->heap);
    int64_t earliest_ns = top != NULL ? top->key : TIME_NEVER;
    if (earliest_ns != deadmen->armed_ns)
        deadman_set(&deadmen->timer, earliest_ns);
    deadmen->armed_ns = earliest_ns;
}

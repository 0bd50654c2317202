#include "candidate/feed.h"

#include <assert.h>
#include <stdlib.h>

#include "candidate/candidates.h"
#include "candidate/env.h"
#include "candidate/state.h"
#include "loop/loop.h"

#define EVENTS_MAX 16 /* fed while a step's actions are carried out */

/* Events that came while actions were carried out: on the stack of candidate_feed. */
struct candidate_queue {
    struct election_event events[EVENTS_MAX];
    unsigned count;
};

void candidate_feed(struct candidate *candidate, const struct election_event *event)
{
    if (candidate->finished)
        return;
    if (candidate->queue != NULL) {
        /* An action failed at once, or ended something that was running: its event waits its turn.
         */
        assert(candidate->queue->count < EVENTS_MAX);
        candidate->queue->events[candidate->queue->count++] = *event;
        return;
    }
    struct candidate_queue queue = {.count = 0};
    struct election_event next = *event;
    /* Taken back before we return. */
    /* cppcheck-suppress autoVariables */
    candidate->queue = &queue;
    for (unsigned done = 0;; done++) {
        struct election_actions actions;
        next.at_ns = loop_now(candidate->env->loop);
        election_step(&candidate->election, &next, &actions);
        for (unsigned i = 0; i < actions.count; i++)
            candidate_hands.carry_out(candidate, &actions.item[i]);
        candidate_hands.stepped(candidate);
        if (done == queue.count)
            break;
        next = queue.events[done];
    }
    candidate->queue = NULL;
    if (!candidate->ended)
        candidates_touch(candidate->env->candidates, candidate);
    if (candidate->finished)
        candidate_hands.finish(candidate);
}

void candidate_feed_type(struct candidate *candidate, enum election_event_type type)
{
    const struct election_event event = {.type = type};
    candidate_feed(candidate, &event);
}

struct scope *candidate_scope(struct candidate *candidate)
{
    if (candidate->scope == NULL) {
        assert(!candidate->ended);
        candidate->scope = scope_new(&candidate_hands.scope, candidate);
    }
    if (candidate->scope == NULL)
        abort(); /* crash-only, as every allocation of a few bytes */
    return candidate->scope;
}

void candidate_scope_leave(struct candidate *candidate)
{
    if (candidate->scope == NULL || candidate->finished || !scope_is_empty(candidate->scope))
        return;
    scope_free(candidate->scope);
    candidate->scope = NULL;
}

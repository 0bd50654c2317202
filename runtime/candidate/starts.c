#include "candidate/starts.h"

#include <stdlib.h>

#include "base/container.h"
#include "candidate/env.h"
#include "candidate/feed.h"
#include "candidate/state.h"
#include "loop/loop.h"
#include "lua/tidy.h"

#define MOST 512 /* in a turn: about as many claims as go into one statement */
/* Tasks at once: with more, a store does not keep up, or does not answer at all. Then the next ones
 * begin when there are fewer, or after a while: those of other stores do not wait for it for ever.
 */
#define CROWD 2048
#define PAUSE_NS (5 * NS_PER_MS)
#define PAUSES_MOST 10

struct starts {
    struct candidate_env *env;
    struct loop_job job;
    struct loop_deadline pause;
    struct list waiting;
    unsigned count;  /* of those that wait */
    unsigned begun;  /* in this turn */
    unsigned paused; /* how often, one after the other */
};

static void begin_some(struct starts *starts)
{
    struct list_node *node;
    starts->begun = starts->paused = 0;
    while (starts->begun < MOST && (node = list_first(&starts->waiting)) != NULL) {
        struct candidate *candidate = container_of(node, struct candidate, start);
        starts->begun++;
        starts_forget(candidate);
        candidate_feed_type(candidate, ELECTION_EVENT_START);
    }
    if (starts->begun > 0)
        loop_defer(starts->env->loop, &starts->job);
}

static void begin_where_there_is_room(struct starts *starts)
{
    struct loop *loop = starts->env->loop;
    bool crowded = tidy_tasks(starts->env->lua) - starts->count >= CROWD;
    if (starts->count == 0 || !crowded || ++starts->paused > PAUSES_MOST)
        begin_some(starts);
    else
        loop_at(loop, &starts->pause, loop_now(loop) + PAUSE_NS);
}

static void next_turn(struct loop_job *job)
{
    begin_where_there_is_room(container_of(job, struct starts, job));
}

static void paused(struct loop_deadline *pause)
{
    begin_where_there_is_room(container_of(pause, struct starts, pause));
}

struct starts *starts_new(struct candidate_env *env)
{
    struct starts *starts = calloc(1, sizeof(*starts));
    if (starts == NULL)
        return NULL;
    starts->env = env;
    starts->job.run = next_turn;
    starts->pause.fire = paused;
    list_init(&starts->waiting);
    return starts;
}

void starts_free(struct starts *starts)
{
    if (starts == NULL)
        return;
    loop_unpost(starts->env->loop, &starts->job);
    loop_at_cancel(starts->env->loop, &starts->pause);
    free(starts);
}

void starts_add(struct starts *starts, struct candidate *candidate)
{
    if (starts->begun >= MOST) { /* the job is on its way, or the pause */
        candidate->waits = true;
        list_append(&starts->waiting, &candidate->start);
        starts->count++;
        tidy_began(starts->env->lua);
        return;
    }
    starts->begun++;
    loop_defer(starts->env->loop, &starts->job);
    candidate_feed_type(candidate, ELECTION_EVENT_START);
}

void starts_forget(struct candidate *candidate)
{
    if (!candidate->waits)
        return;
    struct starts *starts = candidate->env->starts;
    candidate->waits = false;
    list_remove(&candidate->start);
    starts->count--;
    tidy_ended(starts->env->lua);
}

#include "candidate/starts.h"

#include <stdlib.h>

#include "base/container.h"
#include "candidate/env.h"
#include "candidate/feed.h"
#include "candidate/owed.h"
#include "candidate/state.h"
#include "loop/loop.h"
#include "lua/tidy.h"

#define MOST 512 /* in a turn: about as many claims as go into one statement */
/* Claims at once: with more, a store does not keep up, or does not answer at all. Then the next
 * ones begin when there are fewer, or when none has been answered for a while: those of other
 * stores do not wait for it for ever. */
#define CROWD 1024
#define PAUSE_NS (5 * NS_PER_MS)
#define PAUSES_MOST 10

struct starts {
    struct candidate_env *env;
    struct loop_job job;
    struct loop_deadline pause;
    struct list waiting;
    unsigned asking; /* claims that have begun, and are not over */
    unsigned begun;  /* in this turn, or since the crowd is there */
    unsigned paused; /* how often, one after the other, while no claim was over */
};

/* What it waits with is fed, and what has come now. */
static void go_on(struct candidate *candidate, unsigned waits)
{
    waits |= candidate->waits;
    starts_forget(candidate);
    if ((waits & CANDIDATE_WAITS_TO_START) != 0)
        owed_start(candidate);
    if ((waits & CANDIDATE_WAITS_TO_LOOK) != 0)
        candidate_feed_type(candidate, ELECTION_EVENT_TIMER);
    while (candidate->mailbox.untold > 0) {
        candidate->mailbox.untold--;
        candidate_feed_type(candidate, ELECTION_EVENT_MESSAGE);
    }
}

static void begin_some(struct starts *starts)
{
    struct list_node *node;
    unsigned room = starts->asking < CROWD ? CROWD - starts->asking : MOST;
    unsigned most = room < MOST ? room : MOST;
    starts->begun = starts->paused = 0;
    while (starts->begun < most && (node = list_first(&starts->waiting)) != NULL) {
        starts->begun++;
        go_on(container_of(node, struct candidate, start), 0);
    }
    if (starts->begun > 0)
        loop_defer(starts->env->loop, &starts->job);
}

static void begin_where_there_is_room(struct starts *starts)
{
    struct loop *loop = starts->env->loop;
    if (starts->asking < CROWD || ++starts->paused > PAUSES_MOST)
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

/* A leader's messages, and the end of a call's time, wait for nothing. */
static bool may_claim(const struct candidate *candidate)
{
    enum election_phase phase = election_look(&candidate->election).phase;
    return (phase == ELECTION_INIT || phase == ELECTION_FOLLOWING) && candidate->call == NULL &&
           candidate->asked == NULL;
}

static void wait_in_line(struct starts *starts, struct candidate *candidate, unsigned waits)
{
    if (candidate->waits == 0) {
        list_append(&starts->waiting, &candidate->start);
        tidy_began(starts->env->lua);
    }
    candidate->waits |= (uint8_t)waits;
}

static void begin(struct candidate *candidate, unsigned waits)
{
    struct starts *starts = candidate->env->starts;
    bool claims = may_claim(candidate);
    if (claims && (candidate->waits != 0 || starts->begun >= MOST)) {
        wait_in_line(starts, candidate, waits);
        return;
    }
    if (claims && starts->begun++ == 0) /* else the job is on its way, or the pause */
        loop_defer(starts->env->loop, &starts->job);
    go_on(candidate, waits);
}

void starts_add(struct candidate *candidate)
{
    begin(candidate, CANDIDATE_WAITS_TO_START);
}

void starts_due(struct candidate *candidate)
{
    begin(candidate, CANDIDATE_WAITS_TO_LOOK);
}

void starts_tell(struct candidate *candidate)
{
    candidate->mailbox.untold++;
    begin(candidate, CANDIDATE_WAITS_WITH_MESSAGE);
}

void starts_forget(struct candidate *candidate)
{
    if (candidate->waits == 0)
        return;
    candidate->waits = 0;
    list_remove(&candidate->start);
    tidy_ended(candidate->env->lua);
}

void starts_asking(struct starts *starts, bool on)
{
    starts->asking += on ? 1 : -1U;
    if (!on)
        starts->paused = 0;
}

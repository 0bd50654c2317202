/* What is watched: the promises of docs/safety.md as somebody sees them who stands beside the
 * cluster. */
#include <stdio.h>

#include "cluster.h"

void promise_broken(struct world *world, unsigned who, const char *what)
{
    if (world->result.failed)
        return;
    world->result.failed = true;
    (void)snprintf(world->result.what, sizeof(world->result.what), "%.6f s, candidate %u: %s",
                   clock_seconds_from_ns(world->now), who, what);
}

static bool execs_exist(const struct candidate *candidate)
{
    for (unsigned i = 0; i < EXECS_MAX; i++)
        if (candidate->execs[i].alive)
            return true;
    return false;
}

bool term_exists(const struct candidate *candidate)
{
    return candidate->tasks || candidate->lost || execs_exist(candidate) ||
           (candidate->child && candidate->leader_child);
}

static bool execs_act(const struct candidate *candidate)
{
    for (unsigned i = 0; i < EXECS_MAX; i++)
        if (candidate->execs[i].alive && !(candidate->execs[i].of_lost && candidate->lost_late))
            return true;
    return false;
}

/* What is stuck in the kernel exists, but does nothing. */
static bool acts(const struct candidate *candidate)
{
    return candidate->tasks || (candidate->lost && !candidate->lost_late) || execs_act(candidate) ||
           (candidate->child && candidate->leader_child && !candidate->stuck);
}

/* Of a lease that is short beside that, in a world that loses a message in ten, few terms outlive
 * it. */
static bool waits_for_its_followers_end(const struct candidate *candidate)
{
    return candidate->core.phase == ELECTION_LEADING && candidate->child &&
           !candidate->leader_child;
}

/* R16: the child of a leader that may not lead any more has its time to stop, and as long as a
 * keeper may be late and a tree may take to die. */
static void ends_when_barred(struct world *world, unsigned who)
{
    const struct candidate *candidate = &world->candidates[who];
    int64_t most_ns = candidate->core.stop_timeout_ns + world->lead_ns + world->slack_ns;
    most_ns += most_ns * DRIFT_MOST_PPM / 1000000 + NS_PER_MS;
    if (candidate->watch.bars != 0 && candidate->child && candidate->leader_child &&
        !candidate->stuck && candidate->up &&
        local_now(world, candidate) > candidate->barred_ns + most_ns)
        promise_broken(world, who, "its child works on though it may not lead");
}

/* P1: after every step. */
void promise_nobody_overlaps(struct world *world)
{
    unsigned acting = 0;
    for (unsigned i = 0; i < world->count; i++) {
        if (waits_for_its_followers_end(&world->candidates[i]))
            world->last_acting = world->now;
        if (!acts(&world->candidates[i]))
            continue;
        ends_when_barred(world, i);
        world->last_acting = world->now;
        if (acting++ > 0)
            promise_broken(world, i, "acts while another term acts");
    }
}

static struct watched look(const struct world *world, const struct candidate *candidate)
{
    return (struct watched){
        .core = &candidate->core,
        .now_ns = local_now(world, candidate),
        .in_flight = candidate->attempt != 0 ? candidate->verb : STORE_NOTHING,
        .exists = term_exists(candidate),
        .child = candidate->child,
        .leader_goes_on = candidate->child && candidate->leader_child && !candidate->stop_told,
        .stopped = candidate->stopped,
    };
}

static void term_begins(struct world *world, unsigned who, uint64_t epoch)
{
    const struct candidate *candidate = &world->candidates[who];
    if (candidate->term_life < world->last_life ||
        (candidate->term_life == world->last_life && epoch <= world->last_epoch))
        promise_broken(world, who, "leads under an epoch that was there before");
    world->last_life = candidate->term_life;
    world->last_epoch = epoch;
    world->result.terms++;
}

void promise_told(struct world *world, unsigned who, const struct election_event *event)
{
    struct candidate *candidate = &world->candidates[who];
    bool barred = candidate->watch.bars != 0;
    watch_told(&candidate->watch, event);
    if (!barred && candidate->watch.bars != 0)
        candidate->barred_ns = local_now(world, candidate);
}

void promise_action(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    const struct watched now = look(world, candidate);
    const char *broken = watch_action(&candidate->watch, &now, action);
    if (broken != NULL)
        promise_broken(world, who, broken);
    if (action->type == ELECTION_ACTION_RUN_WON)
        term_begins(world, who, action->epoch);
}

void promise_fed(struct world *world, unsigned who, const struct election_event *event,
                 enum election_phase before, enum store_verb answered)
{
    struct candidate *candidate = &world->candidates[who];
    const struct watched now = look(world, candidate);
    const char *broken =
        watch_fed(&candidate->watch, &now, event, before, answered, candidate->answered_ns);
    if (broken != NULL)
        promise_broken(world, who, broken);
}

/* P3, R13: after the faults somebody leads, give or take a backoff and a lease. */
void promise_somebody_leads(struct world *world)
{
    unsigned able = 0, allowed = 0;
    world->now = ENDS_AT;
    promise_nobody_overlaps(
        world); /* whoever acts now counts, also where nothing happens any more */
    for (unsigned i = 0; i < world->count; i++)
        able += !world->candidates[i].finished;
    for (unsigned i = 0; i < world->count; i++)
        allowed += !world->candidates[i].finished && world->candidates[i].rules == 0;
    if (able > 0 && allowed > 0 && world->last_acting < ENDS_AT - PEACE_NS)
        promise_broken(world, 0, "nobody leads though nothing is broken any more");
}

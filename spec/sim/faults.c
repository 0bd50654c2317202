/* What goes wrong, between any two steps, until there is peace. */
#include "cluster.h"

static void stop_for_a_while(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    if (!candidate->up || candidate->paused)
        return;
    int64_t at = edge(world, who);
    candidate->paused = true;
    candidate->resume_at =
        at >= 0 && chance(world, 500) ? at : world->now + below(world, 2 * world->store.ttl_ns);
    (void)plan(world, candidate->resume_at, RESUME, who);
}

static bool mourns(const struct world *world)
{
    return world->memory == MEMORY_SILENT && world->now < world->forgot_at + world->store.ttl_ns;
}

/* A lock without a TTL is not forgotten unseen: its session breaks, which is the oracle's to tell.
 * What nobody announces is seen only by who knew an epoch. */
static void forget(struct world *world)
{
    int64_t ends_at = world->now + world->store.ttl_ns;
    if (world->store.lock || (world->memory == MEMORY_SILENT && world->store.life > 1))
        return;
    for (unsigned i = 0; i < world->count; i++) {
        const struct candidate *candidate = &world->candidates[i];
        if (world->memory == MEMORY_SILENT && (!candidate->up || candidate->finished ||
                                               candidate->core.highest_epoch <= EPOCH_BEFORE))
            return;
    }
    world->forgot_at = world->now;
    store_forget(&world->store, world->memory == MEMORY_SERVER ? ends_at : 0);
    link_watch(world);
}

static void fail_call(struct world *world, unsigned who)
{
    const struct candidate *candidate = &world->candidates[who];
    if (candidate->attempt == 0 || candidate->verb == STORE_RELEASE)
        return;
    feed(world, who,
         (struct election_event){.type = ELECTION_EVENT_UNKNOWN, .attempt = candidate->attempt});
}

/* A health check fails or passes, a window opens or closes. */
static void change_rules(struct world *world, unsigned who)
{
    enum election_bar bar = (enum election_bar)below(world, ELECTION_BAR_COUNT);
    struct candidate *candidate = &world->candidates[who];
    candidate->rules ^= 1u << bar;
    if (candidate->up)
        (void)plan(world, world->now, RULES, who);
}

void faults_inject(struct world *world)
{
    unsigned who = (unsigned)below(world, world->count);
    struct candidate *candidate = &world->candidates[who];
    if (world->has_rules && chance(world, 300))
        change_rules(world, who);
    switch (below(world, 10)) {
    case 0:
    case 1:
        stop_for_a_while(world, who);
        break;
    case 2:
        if (!mourns(world))
            host_crash(world, who);
        break;
    case 3:
        if (!candidate->paused)
            feed(world, who, (struct election_event){.type = ELECTION_EVENT_ABDICATE});
        break;
    case 4:
        world->store.evict = world->store.held;
        break;
    case 5:
        if (chance(world, 300))
            forget(world);
        break;
    case 6:
        if (chance(world, 200) && world->count > 1 && !candidate->paused && candidate->up) {
            candidate->stopped = true;
            feed(world, who, (struct election_event){.type = ELECTION_EVENT_STOP});
        }
        break;
    case 7: /* whoever follows hears a rumour and looks */
    case 8:
        if (!candidate->paused)
            feed(world, who, (struct election_event){.type = ELECTION_EVENT_MESSAGE});
        break;
    default:
        if (!candidate->paused)
            fail_call(world, who);
        break;
    }
    if (world->now < FAULTS_UNTIL)
        (void)plan(world, world->now + below(world, NS_PER_S), FAULT, 0);
}

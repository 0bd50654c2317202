/* Time and chance: one clock for the world, a drifting one for each host. */
#include <stdlib.h>

#include "cluster.h"

int64_t below(struct world *world, int64_t bound)
{
    return (int64_t)random_below(&world->random, (uint64_t)bound);
}

bool chance(struct world *world, unsigned in_thousand)
{
    return random_below(&world->random, 1000) < in_thousand;
}

int64_t extreme(struct world *world, int64_t bound)
{
    switch (below(world, 3)) {
    case 0:
        return 0;
    case 1:
        return bound;
    default:
        return below(world, bound + 1);
    }
}

int64_t local_now(const struct world *world, const struct candidate *candidate)
{
    return candidate->offset_ns + world->now + world->now / 1000 * candidate->drift_ppm / 1000;
}

int64_t global_of(const struct candidate *candidate, int64_t local_ns)
{
    int64_t since = local_ns - candidate->offset_ns;
    int64_t at = since / 1000 * 1000000 / (1000000 + candidate->drift_ppm) * 1000;
    while (candidate->offset_ns + at + at / 1000 * candidate->drift_ppm / 1000 < local_ns)
        at += NS_PER_US;
    return at;
}

struct happening *plan(struct world *world, int64_t at, enum kind kind, unsigned who)
{
    for (unsigned i = 0; i < EVENTS_MAX; i++) {
        struct happening *happening = &world->happenings[(world->free_from + i) % EVENTS_MAX];
        if (happening->used)
            continue;
        world->free_from += i + 1;
        *happening = (struct happening){.kind = kind, .candidate = who, .used = true};
        happening->incarnation = world->candidates[who].incarnation;
        if (heap_set(&world->heap, &happening->node, at < world->now ? world->now : at) < 0)
            abort();
        return happening;
    }
    abort(); /* too many for one run: raise EVENTS_MAX */
}

int64_t edge(struct world *world, unsigned who)
{
    const struct candidate *candidate = &world->candidates[who];
    static const int64_t beside[] = {-NS_PER_MS, -NS_PER_US, 0,
                                     NS_PER_US,  NS_PER_MS,  5 * NS_PER_MS};
    const int64_t instants[] = {candidate->core.refresh_at_ns, candidate->watch.stop_at_ns,
                                candidate->kill_at_ns,         candidate->stop_kill_ns,
                                candidate->deadline_ns,        candidate->core.call.until_ns,
                                candidate->core.lost_until_ns, candidate->watch.sit_out_ns};
    int64_t pick = below(world, sizeof(instants) / sizeof(*instants) + 1);
    int64_t at = world->store.ends_ns;
    if (pick < (int64_t)(sizeof(instants) / sizeof(*instants))) {
        if (instants[pick] == TIME_NEVER || instants[pick] < local_now(world, candidate))
            return -1;
        at = global_of(candidate, instants[pick]);
    }
    at += beside[below(world, sizeof(beside) / sizeof(*beside))];
    return at >= world->now ? at : -1;
}

int64_t any_delay(struct world *world, unsigned who, int64_t usual_ns)
{
    if (chance(world, 30))
        return below(world, 3 * world->store.ttl_ns);
    int64_t at = chance(world, 100) ? edge(world, who) : -1;
    if (at >= 0)
        return at - world->now;
    return chance(world, 100) ? below(world, 400 * NS_PER_MS) : below(world, usual_ns);
}

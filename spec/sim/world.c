#include "world.h"

#include <string.h>

#include "base/container.h"
#include "cluster.h"

/* What a stopped runtime would have read waits for it, and dies with it. @return whether it is not
 * to happen now. */
static bool held_back(struct world *world, const struct happening *happening)
{
    const struct candidate *candidate = &world->candidates[happening->candidate];
    if (happening->kind >= REQUEST)
        return false;
    if (happening->incarnation != candidate->incarnation)
        return true;
    if (!candidate->paused || world->now >= candidate->resume_at)
        return false;
    struct happening copy = *happening;
    struct happening *again = plan(world, candidate->resume_at, copy.kind, copy.candidate);
    copy.node = again->node;
    *again = copy;
    return true;
}

static void happen(struct world *world, const struct happening *happening)
{
    unsigned who = happening->candidate;
    struct candidate *candidate = &world->candidates[who];
    if (world->now >= candidate->resume_at)
        candidate->paused = false;
    switch (happening->kind) {
    case TIMER:
        if (happening->serial == candidate->timer_serial)
            feed(world, who, (struct election_event){.type = ELECTION_EVENT_TIMER});
        break;
    case REPLY:
        link_deliver(world, happening);
        break;
    case CORE_EVENT:
        feed(world, who, happening->event);
        break;
    case TERM_EVENT:
        if (candidate->tasks && candidate->term == happening->serial)
            feed(world, who, happening->event);
        break;
    case LOST_RETURNS:
        if (candidate->term == happening->serial)
            hands_lost_returns(world, who);
        break;
    case RULES:
        host_tell_rules(world, who);
        break;
    case REQUEST:
        link_serve(world, happening);
        break;
    case WATCH:
        if (world->now >= world->store.ends_ns)
            link_watch(world);
        break;
    case FAULT:
        faults_inject(world);
        break;
    default:
        host_happen(world, happening);
        break;
    }
}

static void set_up_store(struct world *world)
{
    world->store.ttl_ns = NS_PER_S / 2 + below(world, 10 * NS_PER_S);
    world->store.lock = chance(world, 150);
    world->store.queue = !world->store.lock && chance(world, 300);
    world->store.life = 1;
    world->store.epoch = EPOCH_BEFORE;
    world->store.release_by_token = world->mutation == MUTATE_RELEASE_BY_TOKEN;
    world->store.claims_unordered = world->mutation == MUTATE_CLAIMS_UNORDERED;
    world->store.epoch_reused = world->mutation == MUTATE_EPOCH_REUSED;
    world->memory = (enum memory)below(world, 3);
    world->has_rules = chance(world, 500);
    world->forgot_at = -world->store.ttl_ns;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void set_up_config(struct world *world)
{
    bool real_time = chance(world, 500);
    int64_t cool_down_ns = chance(world, 100) ? below(world, NS_PER_S) : 0;
    world->store.cool_down_ns = real_time ? cool_down_ns : 0;
    world->config = (struct election_config){
        .timing.real_time = real_time,
        .retry_ns = 200 * NS_PER_MS + below(world, NS_PER_S),
        .cool_down_ns = real_time ? 0 : cool_down_ns,
        .call_timeout_ns = 200 * NS_PER_MS + below(world, 6 * NS_PER_S),
        .lost_timeout_ns = 5 * NS_PER_S,
        .monitor_leader = chance(world, 700),
        .has_child = chance(world, 800),
        .has_follower_child = chance(world, 200),
        .has_abdicate = world->store.lock || chance(world, 900),
        .restart = (enum election_restart)below(world, 3),
        .restart_max = 3,
        .restart_within_ns = 5 * NS_PER_S,
        .restart_backoff_first_ns = 100 * NS_PER_MS,
        .restart_backoff_most_ns = NS_PER_S,
    };
    /* As timing.h promises them. */
    world->slack_ns = real_time ? 20 * NS_PER_MS : least(250 * NS_PER_MS, world->store.ttl_ns / 8);
    world->lead_ns = least(200 * NS_PER_MS, world->store.ttl_ns / 10);
}

static int64_t any_drift(struct world *world)
{
    switch (below(world, 4)) {
    case 0:
        return -DRIFT_MOST_PPM;
    case 1:
        return DRIFT_MOST_PPM;
    default:
        return below(world, 2 * DRIFT_MOST_PPM + 1) - DRIFT_MOST_PPM;
    }
}

static void set_up(struct world *world, uint64_t seed)
{
    random_seed(&world->random, seed);
    world->count = 1 + (unsigned)below(world, CANDIDATES_MAX);
    set_up_store(world);
    set_up_config(world);
    for (unsigned i = 0; i < world->count; i++) {
        struct candidate *candidate = &world->candidates[i];
        candidate->offset_ns = NS_PER_S + below(world, 1000 * NS_PER_S);
        candidate->drift_ppm = any_drift(world);
        candidate->kill_at_ns = candidate->stop_kill_ns = TIME_NEVER;
        hands_forget(candidate);
        (void)plan(world, below(world, NS_PER_S), RESTART, i);
    }
    (void)plan(world, below(world, NS_PER_S), FAULT, 0);
}

struct world_result world_run(uint64_t seed, enum mutation mutation, bool trace)
{
    static struct world world; /* large; one run at a time */
    memset(&world, 0, sizeof(world));
    world.mutation = mutation;
    world.trace = trace;
    set_up(&world, seed);
    for (;;) {
        struct heap_node *top = heap_top(&world.heap);
        if (top == NULL || top->key > ENDS_AT || world.result.failed)
            break;
        struct happening *happening = container_of(top, struct happening, node);
        world.now = top->key;
        heap_remove(&world.heap, top);
        struct happening copy = *happening;
        happening->used = false;
        if (!held_back(&world, &copy))
            happen(&world, &copy);
        promise_nobody_overlaps(&world);
    }
    if (!world.result.failed)
        promise_somebody_leads(&world);
    heap_free(&world.heap);
    return world.result;
}

/* What a host does: a runtime that may be stopped and killed, and keepers, which need no runtime to
 * kill a tree in time. */
#include <stdlib.h>

#include "cluster.h"

#define STUCK_MOST_NS (8 * NS_PER_S)

static void happens_to(struct world *world, int64_t at, enum kind kind, unsigned who,
                       uint64_t serial)
{
    plan(world, at, kind, who)->serial = serial;
}

/* --- processes -------------------------------------------------------------------------------- */

static void tree_dead(struct world *world, unsigned who, bool failed)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->child = candidate->dying = candidate->stuck = false;
    hands_settle(world, who);
    if (!candidate->up)
        return;
    struct election_event gone = {.type = ELECTION_EVENT_CHILD_GONE};
    gone.child.failed = failed;
    feed_later(world, who, below(world, NS_PER_MS), gone);
}

/* SIGKILL: the last of the tree dies within the lead, unless the kernel does not let go of it. */
static void kill_tree(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    if (!candidate->child || candidate->dying)
        return;
    candidate->dying = true;
    candidate->stuck = chance(world, 20);
    int64_t takes = candidate->stuck ? below(world, STUCK_MOST_NS) : extreme(world, world->lead_ns);
    happens_to(world, world->now + takes, TREE_DEAD, who, candidate->child_serial);
}

static void kill_exec(struct world *world, unsigned who, struct exec *exec)
{
    if (!exec->alive || exec->dying)
        return;
    exec->dying = true;
    happens_to(world, world->now + extreme(world, world->lead_ns), EXEC_DEAD, who, exec->serial);
}

void host_start_child(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->child = true;
    candidate->dying = candidate->stuck = candidate->stop_told = false;
    candidate->leader_child = action->role == ELECTION_ROLE_LEADER;
    candidate->child_serial = ++world->serials;
    candidate->stop_kill_ns = TIME_NEVER;
    host_watch(world, who);
    if (chance(world, 50))
        happens_to(world, world->now + below(world, 10 * NS_PER_S), CHILD_EXIT, who,
                   candidate->child_serial);
}

void host_start_exec(struct world *world, unsigned who, bool of_lost)
{
    struct candidate *candidate = &world->candidates[who];
    for (unsigned i = 0; i < EXECS_MAX; i++) {
        struct exec *exec = &candidate->execs[i];
        if (exec->alive)
            continue;
        *exec = (struct exec){.alive = true, .of_lost = of_lost, .serial = ++world->serials};
        if (chance(world, 500))
            happens_to(world, world->now + any_delay(world, who, NS_PER_S), EXEC_DEAD, who,
                       exec->serial);
        return;
    }
}

/* One whose keeper is stopped lives until that kills it at the term's kill instant; a `lost` that a
 * dead runtime owed has none, so there the keeper goes on. */
void host_kill_execs(struct world *world, unsigned who, bool of_lost)
{
    struct candidate *candidate = &world->candidates[who];
    bool without_end = of_lost && candidate->lost_late;
    for (unsigned i = 0; i < EXECS_MAX; i++)
        if (candidate->execs[i].of_lost == of_lost && (chance(world, 700) || without_end))
            kill_exec(world, who, &candidate->execs[i]);
}

static void exec_dead(struct world *world, unsigned who, uint64_t serial)
{
    for (unsigned i = 0; i < EXECS_MAX; i++)
        if (world->candidates[who].execs[i].serial == serial)
            world->candidates[who].execs[i].alive = false;
    hands_settle(world, who);
}

/* --- clocks that need no runtime -------------------------------------------------------------- */

/* A keeper's clock goes off late, by what the margin allows. */
static void set_alarm(struct world *world, unsigned who, enum kind kind, int64_t instant)
{
    if (instant == TIME_NEVER)
        return;
    const struct candidate *candidate = &world->candidates[who];
    int64_t at = global_of(candidate, instant) + extreme(world, world->slack_ns - NS_PER_MS);
    plan(world, at, kind, who)->instant = instant;
}

void host_watch(struct world *world, unsigned who)
{
    const struct candidate *candidate = &world->candidates[who];
    set_alarm(world, who, KEEPER, candidate->kill_at_ns);
    if (candidate->child)
        set_alarm(world, who, KEEPER, candidate->stop_kill_ns);
    set_alarm(world, who, DEADMAN, candidate->deadline_ns);
}

static void keeper(struct world *world, unsigned who, int64_t instant)
{
    const struct candidate *candidate = &world->candidates[who];
    if (world->mutation == MUTATE_LAZY_KEEPER)
        return;
    if (instant == candidate->kill_at_ns)
        for (unsigned i = 0; i < EXECS_MAX; i++)
            kill_exec(world, who, &world->candidates[who].execs[i]);
    if (instant == candidate->stop_kill_ns ||
        (instant == candidate->kill_at_ns && candidate->leader_child))
        kill_tree(world, who);
}

/* The kernel kills a runtime whose Lua should be over. Where none is left the timer is disarmed. */
static void deadman(struct world *world, unsigned who, int64_t instant)
{
    const struct candidate *candidate = &world->candidates[who];
    bool armed = candidate->tasks || (candidate->lost && !candidate->lost_late) ||
                 world->mutation == MUTATE_ARMED_WHILE_RELEASING;
    if (!candidate->up || instant != candidate->deadline_ns || !armed ||
        world->mutation == MUTATE_NO_DEADMAN)
        return;
    if (!candidate->paused && !term_exists(candidate))
        promise_broken(world, who, "is killed by its own dead-man timer, though it is well");
    host_crash(world, who);
}

/* --- the runtime ------------------------------------------------------------------------------ */

void host_crash(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    if (!candidate->up)
        return;
    candidate->up = candidate->paused = false;
    candidate->incarnation++;
    hands_forget(candidate);
    kill_tree(world, who); /* the keepers see the end of their lines */
    for (unsigned i = 0; i < EXECS_MAX; i++)
        kill_exec(world, who, &candidate->execs[i]);
    (void)plan(world, world->now + below(world, NS_PER_S), RESTART, who);
}

void host_tell_rules(struct world *world, unsigned who)
{
    const struct candidate *candidate = &world->candidates[who];
    for (int bar = 0; bar < ELECTION_BAR_COUNT; bar++) {
        const bool set = (candidate->rules & 1u << bar) != 0;
        struct election_event event = {.type = ELECTION_EVENT_BARRED,
                                       .bar = (enum election_bar)bar};
        if (!set)
            event.type = ELECTION_EVENT_ALLOWED;
        if (set != ((candidate->watch.bars & 1u << bar) != 0))
            feed(world, who, event);
    }
}

void host_start_runtime(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    struct crown_error err;
    if (candidate->finished || candidate->up)
        return;
    if (candidate->child || term_exists(candidate)) {
        (void)plan(world, world->now + 10 * NS_PER_MS, RESTART, who); /* its trees still die */
        return;
    }
    struct election_config config = world->config;
    config.seed = random_next(&world->random);
    if (election_init(&candidate->core, &config, candidate->restarted, &err) < 0)
        abort();
    election_share(&candidate->core, &world->config);
    candidate->up = true;
    candidate->known_life =
        world->now > world->forgot_at + world->store.ttl_ns ? world->store.life : 0;
    store_free_lock(&world->store, who);
    link_watch(world);
    host_tell_rules(world, who);
    feed(world, who,
         (struct election_event){.type = candidate->watch.won ? ELECTION_EVENT_START_OWING
                                                              : ELECTION_EVENT_START});
}

void host_happen(struct world *world, const struct happening *happening)
{
    unsigned who = happening->candidate;
    struct candidate *candidate = &world->candidates[who];
    bool same_child = candidate->child && happening->serial == candidate->child_serial;
    switch (happening->kind) {
    case CHILD_EXIT:
        if (same_child && !candidate->dying)
            tree_dead(world, who, chance(world, 500));
        break;
    case TREE_DEAD:
        if (same_child)
            tree_dead(world, who, true);
        break;
    case EXEC_DEAD:
        exec_dead(world, who, happening->serial);
        break;
    case KEEPER:
        keeper(world, who, happening->instant);
        break;
    case DEADMAN:
        deadman(world, who, happening->instant);
        break;
    case RESUME:
        if (candidate->paused && world->now >= candidate->resume_at)
            candidate->paused = false;
        break;
    case RESTART:
        host_start_runtime(world, who);
        break;
    default:
        break;
    }
}

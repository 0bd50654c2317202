#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/random.h"
#include "election/state.h"
#include "store.h"

#define CANDIDATES_MAX 4
#define FAULTS_UNTIL (25 * NS_PER_S)
#define ENDS_AT (90 * NS_PER_S)
#define PEACE_NS (40 * NS_PER_S) /* the longest that nobody may lead in peace */
#define EVENTS_MAX 4096

enum kind {
    TIMER,
    REQUEST,
    REPLY,
    CORE_EVENT,
    CHILD_EXIT,
    TREE_DEAD,
    KEEPER,
    DEADMAN,
    RESUME,
    RESTART,
    FAULT
};

struct happening {
    struct heap_node node;
    enum kind kind;
    unsigned candidate;
    unsigned incarnation; /* of the runtime that it concerns */
    uint64_t serial;      /* of the timer, the child, the call */
    struct store_request request;
    struct store_reply reply;
    struct election_event event;
    bool used;
};

struct candidate {
    struct election core;
    bool up, paused, finished;
    unsigned incarnation;
    int64_t offset_ns;
    double rate;
    uint64_t timer_serial;
    uint32_t attempt; /* in flight; 0: none */
    uint64_t claim;   /* number of the last claim */
    int64_t sent_ns;
    bool child, leader_child;
    uint64_t child_epoch, child_serial;
    bool dying;
    int64_t kill_at_ns, stop_kill_ns; /* on the local clock */
    bool tasks;
    uint64_t tasks_epoch;
    int64_t deadline_ns;
    bool won;
    uint64_t pending_restart;
};

struct world {
    struct random random;
    enum mutation mutation;
    bool trace;
    int64_t now;
    struct heap heap;
    struct happening happenings[EVENTS_MAX];
    unsigned free_from;
    struct store store;
    unsigned count;
    struct candidate candidates[CANDIDATES_MAX];
    uint64_t claims, children;
    uint64_t last_epoch;
    int64_t last_acting;
    struct election_config config;
    struct world_result result;
};

static void fail(struct world *world, unsigned who, const char *what)
{
    if (world->result.failed)
        return;
    world->result.failed = true;
    (void)snprintf(world->result.what, sizeof(world->result.what), "%.6f s, candidate %u: %s",
                   clock_seconds_from_ns(world->now), who, what);
}

static int64_t below(struct world *world, int64_t bound)
{
    return (int64_t)random_below(&world->random, (uint64_t)bound);
}

static bool chance(struct world *world, unsigned in_thousand)
{
    return random_below(&world->random, 1000) < in_thousand;
}

/* Local clocks: each host's own offset and rate. */
static int64_t local(const struct world *world, const struct candidate *candidate)
{
    return candidate->offset_ns + (int64_t)((double)world->now * candidate->rate);
}

static int64_t global(const struct candidate *candidate, int64_t local_ns)
{
    return (int64_t)((double)(local_ns - candidate->offset_ns) / candidate->rate) + NS_PER_US;
}

static struct happening *plan(struct world *world, int64_t at, enum kind kind, unsigned who)
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

/* How long a message takes: mostly little, sometimes much longer than a lease. */
static int64_t delay(struct world *world)
{
    if (chance(world, 30))
        return below(world, 3 * world->store.ttl_ns);
    return 100 * NS_PER_US + below(world, chance(world, 100) ? 400 * NS_PER_MS : 5 * NS_PER_MS);
}

static void feed(struct world *world, unsigned who, struct election_event event);

/* --- what runs
 * -------------------------------------------------------------------------------------------------
 */

static void check(struct world *world)
{
    unsigned terms = 0, first = 0;
    uint64_t epoch = 0;
    for (unsigned i = 0; i < world->count; i++) {
        const struct candidate *candidate = &world->candidates[i];
        const uint64_t acting[2] = {
            candidate->child && candidate->leader_child ? candidate->child_epoch : 0,
            candidate->tasks ? candidate->tasks_epoch : 0};
        for (unsigned j = 0; j < 2; j++) {
            if (acting[j] == 0 || (terms > 0 && first == i && epoch == acting[j]))
                continue;
            if (terms++ > 0)
                fail(world, i, "acts while another term acts");
            first = i;
            epoch = acting[j];
            world->last_acting = world->now;
        }
    }
}

static void begin_term(struct world *world, unsigned who, uint64_t epoch)
{
    if (epoch <= world->last_epoch && world->store.sit_out_ns == 0)
        fail(world, who, "leads under an epoch that was there before");
    world->last_epoch = epoch;
    world->result.terms++;
}

static void watch_keeper(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    int64_t at = candidate->kill_at_ns < candidate->stop_kill_ns ? candidate->kill_at_ns
                                                                 : candidate->stop_kill_ns;
    if (candidate->child && at != TIME_NEVER)
        plan(world, global(candidate, at), KEEPER, who)->serial = candidate->child_serial;
}

/* What timing.c allows for killing a whole tree. */
static int64_t lead(const struct world *world)
{
    int64_t tenth = world->store.ttl_ns / 10;
    return tenth < 200 * NS_PER_MS ? tenth : 200 * NS_PER_MS;
}

/* SIGKILL to the tree: the last of it dies within the lead. */
static void kill_tree(struct world *world, unsigned who, int64_t most)
{
    struct candidate *candidate = &world->candidates[who];
    if (!candidate->child || candidate->dying)
        return;
    candidate->dying = true;
    plan(world, world->now + below(world, most), TREE_DEAD, who)->serial = candidate->child_serial;
}

static void crash(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    if (!candidate->up)
        return;
    candidate->up = candidate->paused = candidate->tasks = candidate->won = false;
    candidate->incarnation++;
    candidate->attempt = 0;
    kill_tree(world, who, 50 * NS_PER_MS); /* the keeper sees the end of its line */
    plan(world, world->now + below(world, NS_PER_S), RESTART, who);
}

/* --- carrying out actions
 * --------------------------------------------------------------------------------------- */

static void send(struct world *world, unsigned who, enum store_verb verb, uint32_t attempt)
{
    struct candidate *candidate = &world->candidates[who];
    if (verb == STORE_CLAIM)
        candidate->claim = ++world->claims;
    candidate->attempt = attempt;
    candidate->sent_ns = local(world, candidate);
    unsigned copies = chance(world, 20) ? 0 : chance(world, 10) ? 2 : 1;
    while (copies-- > 0) {
        struct happening *happening = plan(world, world->now + delay(world), REQUEST, who);
        happening->request = (struct store_request){verb, who, candidate->claim};
        happening->serial = attempt;
    }
}

static void later(struct world *world, unsigned who, int64_t after, struct election_event event)
{
    plan(world, world->now + after, CORE_EVENT, who)->event = event;
}

static void start_child(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    if (candidate->child)
        fail(world, who, "starts a child beside another");
    candidate->child = true;
    candidate->dying = false;
    candidate->leader_child = action->role == ELECTION_ROLE_LEADER;
    candidate->child_epoch = action->epoch;
    candidate->child_serial = ++world->children;
    candidate->kill_at_ns = action->kill_at_ns;
    candidate->stop_kill_ns = TIME_NEVER;
    watch_keeper(world, who);
    if (chance(world, 50)) {
        struct happening *exit =
            plan(world, world->now + below(world, 10 * NS_PER_S), CHILD_EXIT, who);
        exit->serial = candidate->child_serial;
    }
}

static void stop_child(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->stop_kill_ns = action->kill_at_ns;
    watch_keeper(world, who);
    if (chance(world, 700)) /* the others ignore the signal */
        plan(world, world->now + below(world, NS_PER_S), CHILD_EXIT, who)->serial =
            candidate->child_serial;
    if (world->mutation == MUTATE_RELEASE_FIRST) {
        const struct store_request release = {STORE_RELEASE, who, candidate->claim};
        (void)store_serve(&world->store, &release, world->now);
    }
}

static int64_t mutated(const struct world *world, const struct candidate *candidate, int64_t at)
{
    if (at == TIME_NEVER)
        return at;
    if (world->mutation == MUTATE_LATE_ANCHOR)
        return at + local(world, candidate) - candidate->sent_ns;
    if (world->mutation == MUTATE_NO_MARGIN)
        return at + candidate->core.schedule.margin_ns + candidate->core.schedule.lead_ns;
    return at;
}

static void set_deadline(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->kill_at_ns = mutated(world, candidate, action->kill_at_ns);
    candidate->deadline_ns = mutated(world, candidate, action->deadline_ns);
    if (candidate->deadline_ns != TIME_NEVER)
        (void)plan(world, global(candidate, candidate->deadline_ns), DEADMAN, who);
    watch_keeper(world, who);
}

static void run_lost(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    if (!candidate->won)
        fail(world, who, "lost without a won before");
    candidate->won = false;
    later(world, who, below(world, chance(world, 100) ? 20 * NS_PER_S : 20 * NS_PER_MS),
          (struct election_event){.type = ELECTION_EVENT_LOST_DONE});
}

static void run_won(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    if (candidate->won)
        fail(world, who, "won twice without a lost between");
    candidate->won = candidate->tasks = true;
    candidate->tasks_epoch = action->epoch;
    begin_term(world, who, action->epoch);
    if (chance(world, 10))
        later(world, who, below(world, NS_PER_S),
              (struct election_event){.type = ELECTION_EVENT_WON_FAILED});
}

static void carry_out(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
    case ELECTION_ACTION_CALL_INFO:
        send(world, who, STORE_CLAIM, action->attempt);
        break;
    case ELECTION_ACTION_CALL_REFRESH:
        send(world, who, STORE_REFRESH, action->attempt);
        break;
    case ELECTION_ACTION_CALL_ABDICATE:
        if (candidate->tasks || (candidate->child && candidate->leader_child))
            fail(world, who, "releases while something of the term runs");
        send(world, who, STORE_RELEASE, action->attempt);
        break;
    case ELECTION_ACTION_CANCEL_CALL:
        candidate->attempt = 0;
        break;
    case ELECTION_ACTION_ARM_TIMER:
        candidate->timer_serial++;
        if (action->at_ns != TIME_NEVER)
            plan(world, global(candidate, action->at_ns), TIMER, who)->serial =
                candidate->timer_serial;
        break;
    case ELECTION_ACTION_SET_DEADLINE:
        set_deadline(world, who, action);
        break;
    case ELECTION_ACTION_CLEAR_DEADLINE:
        candidate->deadline_ns = TIME_NEVER;
        break;
    case ELECTION_ACTION_START_CHILD:
        start_child(world, who, action);
        break;
    case ELECTION_ACTION_STOP_CHILD:
        stop_child(world, who, action);
        break;
    case ELECTION_ACTION_CLOSE_TERM:
        candidate->tasks = false;
        later(world, who, below(world, NS_PER_MS),
              (struct election_event){.type = ELECTION_EVENT_TERM_GONE});
        break;
    case ELECTION_ACTION_CLOSE_LOST:
        later(world, who, below(world, NS_PER_MS),
              (struct election_event){.type = ELECTION_EVENT_LOST_DONE});
        break;
    case ELECTION_ACTION_RUN_WON:
        run_won(world, who, action);
        break;
    case ELECTION_ACTION_RUN_LOST:
        run_lost(world, who);
        break;
    case ELECTION_ACTION_FINISH:
        candidate->finished = true;
        store_free_lock(&world->store, who); /* its session ends with it */
        break;
    default:
        break;
    }
}

static void print_action(const struct world *world, unsigned who,
                         const struct election_action *action)
{
    printf("%12.6f %u   -> %s", clock_seconds_from_ns(world->now), who,
           election_action_name(action->type));
    if (action->type == ELECTION_ACTION_EMIT)
        printf(" %s", election_notice_name(action->notice));
    if (action->reason != ELECTION_REASON_NONE)
        printf(" %s", election_reason_name(action->reason));
    printf(" epoch %llu\n", (unsigned long long)action->epoch);
}

static void feed(struct world *world, unsigned who, struct election_event event)
{
    struct candidate *candidate = &world->candidates[who];
    struct election_actions actions;
    if (!candidate->up || candidate->finished)
        return;
    event.at_ns = local(world, candidate);
    enum election_phase before = election_look(&candidate->core).phase;
    election_step(&candidate->core, &event, &actions);
    world->result.steps++;
    if (world->trace)
        printf("%12.6f %u %s: %s\n", clock_seconds_from_ns(world->now), who,
               election_phase_name(before), election_event_name(event.type));
    for (unsigned i = 0; i < actions.count; i++) {
        if (world->trace)
            print_action(world, who, &actions.item[i]);
        carry_out(world, who, &actions.item[i]);
    }
    if (candidate->finished && candidate->won)
        fail(world, who, "finished, but lost was never called");
}

/* --- what happens
 * -----------------------------------------------------------------------------------------------
 */

static void start_runtime(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    struct crown_error err;
    struct election_config config = world->config;
    config.seed = random_next(&world->random);
    if (candidate->finished || candidate->up)
        return;
    if (candidate->child) {
        (void)plan(world, world->now + 10 * NS_PER_MS, RESTART, who); /* its tree is still dying */
        return;
    }
    if (election_init(&candidate->core, &config, &err) < 0)
        abort();
    candidate->up = true;
    candidate->deadline_ns = TIME_NEVER;
    store_free_lock(&world->store, who);
    feed(world, who, (struct election_event){.type = ELECTION_EVENT_START});
}

static void tree_dead(struct world *world, unsigned who, bool failed)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->child = candidate->dying = false;
    if (!candidate->up)
        return;
    struct election_event gone = {.type = ELECTION_EVENT_CHILD_GONE};
    gone.child.failed = failed;
    later(world, who, below(world, NS_PER_MS), gone);
}

static void deliver(struct world *world, const struct happening *happening)
{
    struct candidate *candidate = &world->candidates[happening->candidate];
    struct election_event event = {.attempt = (uint32_t)happening->serial};
    if (candidate->attempt != happening->serial)
        return; /* the call was dropped, or answered already: nobody reads this */
    candidate->attempt = 0;
    if (happening->request.verb == STORE_RELEASE) {
        event.type = ELECTION_EVENT_RELEASED;
    } else if (happening->reply.granted) {
        event.type = ELECTION_EVENT_GRANTED;
        event.grant.epoch = happening->reply.epoch;
        event.grant.ttl_ns = world->store.lock ? 0 : world->store.ttl_ns;
        event.grant.refresh_ns = world->store.lock ? TIME_NEVER : world->store.ttl_ns / 3;
    } else if (happening->reply.evicted) {
        event.type = ELECTION_EVENT_EVICTED;
    } else {
        event.type = ELECTION_EVENT_DENIED;
        event.denial.expires_ns = happening->reply.expires_ns;
        event.denial.epoch = happening->reply.epoch;
        event.denial.amnesia = happening->reply.amnesia;
    }
    feed(world, happening->candidate, event);
}

static void serve(struct world *world, const struct happening *happening)
{
    unsigned who = happening->candidate;
    const struct candidate *candidate = &world->candidates[who];
    /* A lock belongs to a session; a call that was given up has closed it, and the server knows. */
    if (world->store.lock && happening->request.verb == STORE_CLAIM &&
        (candidate->incarnation != happening->incarnation ||
         candidate->attempt != happening->serial))
        return;
    struct store_reply reply = store_serve(&world->store, &happening->request, world->now);
    if (chance(world, 20))
        return; /* the answer is lost */
    struct happening *answer = plan(world, world->now + delay(world), REPLY, who);
    answer->incarnation = happening->incarnation;
    answer->serial = happening->serial;
    answer->request = happening->request;
    answer->reply = reply;
}

static void inject(struct world *world)
{
    unsigned who = (unsigned)below(world, world->count);
    struct candidate *candidate = &world->candidates[who];
    switch (below(world, 9)) {
    case 0:
    case 1:
        candidate->paused = candidate->up;
        (void)plan(world, world->now + below(world, 2 * world->store.ttl_ns), RESUME, who);
        break;
    case 2:
        crash(world, who);
        break;
    case 3:
        feed(world, who, (struct election_event){.type = ELECTION_EVENT_ABDICATE});
        break;
    case 4:
        world->store.evict = world->store.held;
        break;
    case 5:
        /* A lock without a TTL is not forgotten unseen: its session breaks, which is the oracle's
         * to tell. */
        if (!world->store.lock && chance(world, 200))
            store_forget(&world->store, world->now);
        break;
    case 6:
        if (chance(world, 200) && world->count > 1)
            feed(world, who, (struct election_event){.type = ELECTION_EVENT_STOP});
        break;
    case 7: /* whoever follows hears a rumour and looks */
        feed(world, who, (struct election_event){.type = ELECTION_EVENT_MESSAGE});
        break;
    default:
        feed(world, who, (struct election_event){.type = ELECTION_EVENT_UNKNOWN, .attempt = 1});
        break;
    }
    if (world->now < FAULTS_UNTIL)
        (void)plan(world, world->now + below(world, NS_PER_S), FAULT, 0);
}

/* What a stopped runtime would have read waits for it. @return whether it has to wait. */
static bool held_back(struct world *world, const struct happening *happening)
{
    const struct candidate *candidate = &world->candidates[happening->candidate];
    if (happening->kind > CORE_EVENT || happening->kind == REQUEST)
        return false;
    if (happening->incarnation != candidate->incarnation)
        return true; /* meant for a runtime that is dead */
    if (!candidate->paused)
        return false;
    struct happening copy = *happening;
    struct happening *again = plan(world, world->now + 5 * NS_PER_MS, copy.kind, copy.candidate);
    copy.node = again->node;
    *again = copy;
    return true;
}

static void happen(struct world *world, const struct happening *happening)
{
    unsigned who = happening->candidate;
    struct candidate *candidate = &world->candidates[who];
    bool same_child = candidate->child && happening->serial == candidate->child_serial;
    int64_t now = local(world, candidate);
    switch (happening->kind) {
    case TIMER:
        if (happening->serial == candidate->timer_serial)
            feed(world, who, (struct election_event){.type = ELECTION_EVENT_TIMER});
        break;
    case REQUEST:
        serve(world, happening);
        break;
    case REPLY:
        deliver(world, happening);
        break;
    case CORE_EVENT:
        feed(world, who, happening->event);
        break;
    case CHILD_EXIT:
        if (same_child && !candidate->dying)
            tree_dead(world, who, chance(world, 500));
        break;
    case TREE_DEAD:
        if (same_child)
            tree_dead(world, who, true);
        break;
    case KEEPER:
        if (same_child && world->mutation != MUTATE_LAZY_KEEPER &&
            (now >= candidate->kill_at_ns || now >= candidate->stop_kill_ns))
            kill_tree(world, who, lead(world));
        break;
    case DEADMAN:
        if (candidate->up && candidate->tasks && now >= candidate->deadline_ns &&
            world->mutation != MUTATE_NO_DEADMAN)
            crash(world, who);
        break;
    case RESUME:
        candidate->paused = false;
        break;
    case RESTART:
        start_runtime(world, who);
        break;
    case FAULT:
        inject(world);
        break;
    }
}

static void set_up(struct world *world, uint64_t seed)
{
    random_seed(&world->random, seed);
    world->count = 1 + (unsigned)below(world, CANDIDATES_MAX);
    world->store.ttl_ns = NS_PER_S + below(world, 9 * NS_PER_S);
    world->store.lock = chance(world, 200);
    world->store.release_by_token = world->mutation == MUTATE_RELEASE_BY_TOKEN;
    world->store.claims_unordered = world->mutation == MUTATE_CLAIMS_UNORDERED;
    world->config = (struct election_config){
        .retry_ns = 200 * NS_PER_MS + below(world, NS_PER_S),
        .cool_down_ns = chance(world, 100) ? below(world, NS_PER_S) : 0,
        .call_timeout_ns = NS_PER_S + below(world, 5 * NS_PER_S),
        .lost_timeout_ns = 5 * NS_PER_S,
        .monitor_leader = true,
        .has_child = chance(world, 800),
        .has_follower_child = chance(world, 200),
        .has_abdicate = world->store.lock || chance(world, 900),
        .restart = (enum election_restart)below(world, 3),
        .restart_max = 3,
        .restart_within_ns = 5 * NS_PER_S,
        .restart_backoff_first_ns = 100 * NS_PER_MS,
        .restart_backoff_most_ns = NS_PER_S,
    };
    for (unsigned i = 0; i < world->count; i++) {
        struct candidate *candidate = &world->candidates[i];
        candidate->offset_ns = NS_PER_S + below(world, 1000 * NS_PER_S);
        candidate->rate = 1.0 + ((double)below(world, 1001) - 500) / 1e6; /* ±500 ppm */
        candidate->deadline_ns = candidate->kill_at_ns = candidate->stop_kill_ns = TIME_NEVER;
        (void)plan(world, below(world, NS_PER_S), RESTART, i);
    }
    (void)plan(world, below(world, NS_PER_S), FAULT, 0);
}

/* After the faults somebody leads, give or take a backoff and a lease. */
static void check_liveness(struct world *world)
{
    unsigned able = 0;
    world->now = ENDS_AT;
    check(world); /* whoever acts now counts, also where nothing happens any more */
    for (unsigned i = 0; i < world->count; i++)
        able += !world->candidates[i].finished;
    if (able > 0 && world->last_acting < ENDS_AT - PEACE_NS)
        fail(world, 0, "nobody leads though nothing is broken any more");
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
        struct happening *happening =
            (struct happening *)((char *)top - offsetof(struct happening, node));
        world.now = top->key;
        heap_remove(&world.heap, top);
        struct happening copy = *happening;
        happening->used = false;
        if (!held_back(&world, &copy))
            happen(&world, &copy);
        check(&world);
    }
    if (!world.result.failed)
        check_liveness(&world);
    heap_free(&world.heap);
    return world.result;
}

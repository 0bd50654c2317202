/* What is watched: the promises of docs/safety.md as somebody sees them who stands beside the
 * cluster. */
#include <stdio.h>

#include "cluster.h"

#define CLAIM_LATE_NS (10 * NS_PER_MS)
#define REFRESH_LATE_NS NS_PER_MS

void promise_broken(struct world *world, unsigned who, const char *what)
{
    if (world->result.failed)
        return;
    world->result.failed = true;
    (void)snprintf(world->result.what, sizeof(world->result.what), "%.6f s, candidate %u: %s",
                   clock_seconds_from_ns(world->now), who, what);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
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

/* P1: after every step. */
void promise_nobody_overlaps(struct world *world)
{
    unsigned acting = 0;
    for (unsigned i = 0; i < world->count; i++) {
        if (!acts(&world->candidates[i]))
            continue;
        world->last_acting = world->now;
        if (acting++ > 0)
            promise_broken(world, i, "acts while another term acts");
    }
}

static void term_begins(struct world *world, unsigned who, uint64_t epoch)
{
    struct candidate *candidate = &world->candidates[who];
    bool later = candidate->term_life > world->last_life ||
                 (candidate->term_life == world->last_life && epoch > world->last_epoch);
    if (term_exists(candidate))
        promise_broken(world, who, "begins a term while something of an earlier one exists");
    if (!later)
        promise_broken(world, who, "leads under an epoch that was there before");
    if (candidate->won)
        promise_broken(world, who, "won twice without a lost between");
    world->last_life = candidate->term_life;
    world->last_epoch = epoch;
    world->result.terms++;
    candidate->won = true;
}

static void claims(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    if (candidate->unsure)
        promise_broken(world, who, "claims again before it gave back what it may have got");
    if (local_now(world, candidate) < candidate->sit_out_ns)
        promise_broken(world, who, "acts on a store that it is to sit out");
    candidate->claim_due_ns = TIME_NEVER;
}

static bool leads(enum election_phase phase)
{
    return phase == ELECTION_LEADING || phase == ELECTION_COOLING;
}

/* Before an action is carried out. */
void promise_action(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    const struct election_view view = election_look(&candidate->core);
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
        claims(world, who);
        break;
    case ELECTION_ACTION_CALL_INFO:
        if (!leads(view.phase))
            claims(world, who);
        break;
    case ELECTION_ACTION_CALL_REFRESH:
        candidate->refresh_due_ns = TIME_NEVER;
        break;
    case ELECTION_ACTION_CALL_ABDICATE:
        if (term_exists(candidate))
            promise_broken(world, who, "releases while something of the term exists");
        candidate->unsure = false;
        break;
    case ELECTION_ACTION_CANCEL_CALL:
        if (candidate->verb == STORE_CLAIM && world->config.has_abdicate)
            candidate->unsure = true;
        if (candidate->verb == STORE_REFRESH)
            candidate->refresh_due_ns =
                clock_add_ns(local_now(world, candidate), candidate->refresh_ns);
        break;
    case ELECTION_ACTION_SET_DEADLINE:
        if (action->stop_at_ns <= local_now(world, candidate))
            promise_broken(world, who, "takes a lease that leaves no time to act");
        break;
    case ELECTION_ACTION_START_CHILD:
        if (candidate->child)
            promise_broken(world, who, "starts a child beside another");
        break;
    case ELECTION_ACTION_RUN_WON:
        term_begins(world, who, action->epoch);
        break;
    case ELECTION_ACTION_RUN_LOST:
        if (!candidate->won)
            promise_broken(world, who, "lost without a won before");
        candidate->won = false;
        break;
    case ELECTION_ACTION_FINISH:
        if (candidate->won)
            promise_broken(world, who, "finishes, but lost was never called");
        if (candidate->unsure)
            promise_broken(world, who, "finishes before it gave back what it may have got");
        if (!candidate->stopped)
            promise_broken(world, who, "finishes though nobody stopped it");
        break;
    default:
        break;
    }
}

static void note_answer(struct world *world, struct candidate *candidate,
                        const struct election_event *event, enum store_verb verb, bool followed)
{
    int64_t now = local_now(world, candidate);
    switch (event->type) {
    case ELECTION_EVENT_GRANTED:
        if (event->grant.epoch != candidate->core.epoch) {
            candidate->refresh_due_ns = TIME_NEVER; /* another term's: it is not taken */
            break;
        }
        candidate->refresh_ns = event->grant.refresh_ns;
        candidate->refresh_due_ns = clock_add_ns(candidate->answered_ns, event->grant.refresh_ns);
        if (candidate->refresh_due_ns < now)
            candidate->refresh_due_ns = clock_add_ns(now, event->grant.refresh_ns);
        break;
    case ELECTION_EVENT_DENIED:
        candidate->refresh_due_ns = TIME_NEVER;
        if (event->denial.amnesia)
            candidate->sit_out_ns =
                later(candidate->sit_out_ns, clock_add_ns(now, event->denial.expires_ns));
        if (followed && candidate->attempt == 0 && event->denial.expires_ns >= 0 &&
            world->config.monitor_leader)
            candidate->claim_due_ns = clock_add_ns(now, event->denial.expires_ns);
        break;
    case ELECTION_EVENT_EVICTED:
        candidate->refresh_due_ns = TIME_NEVER;
        break;
    case ELECTION_EVENT_UNKNOWN:
        if (verb == STORE_REFRESH)
            candidate->refresh_due_ns = clock_add_ns(now, candidate->refresh_ns);
        break;
    default:
        break;
    }
}

/* After an event was taken and its actions were carried out. */
void promise_fed(struct world *world, unsigned who, const struct election_event *event,
                 enum election_phase before, enum store_verb verb)
{
    struct candidate *candidate = &world->candidates[who];
    const struct election_view view = election_look(&candidate->core);
    int64_t now = local_now(world, candidate);
    bool answer = verb != STORE_NOTHING;
    if (answer)
        note_answer(world, candidate, event, verb,
                    before == ELECTION_FOLLOWING || before == ELECTION_INIT);
    if (answer && event->type == ELECTION_EVENT_UNKNOWN && leads(before) &&
        now < candidate->stop_at_ns && view.phase != before && view.phase != ELECTION_LEADING)
        promise_broken(world, who, "steps down though nothing is known");
    if (answer && event->type == ELECTION_EVENT_DENIED && leads(before) &&
        (leads(view.phase) ||
         (candidate->child && candidate->leader_child && !candidate->stop_told)))
        promise_broken(world, who, "lost for certain, and goes on");
    bool ours = leads(view.phase) ||
                (view.phase == ELECTION_STEPPING && view.last_reason != ELECTION_REASON_EXPIRED &&
                 term_exists(candidate));
    if (ours && candidate->attempt == 0 && now < candidate->kill_at_ns &&
        now > clock_add_ns(candidate->refresh_due_ns, REFRESH_LATE_NS))
        promise_broken(world, who, "lets a refresh fall due");
    if (view.phase != ELECTION_FOLLOWING)
        candidate->claim_due_ns = TIME_NEVER;
    else if (candidate->attempt == 0 && !candidate->unsure && !view.ending &&
             now >
                 clock_add_ns(later(candidate->claim_due_ns, candidate->sit_out_ns), CLAIM_LATE_NS))
        promise_broken(world, who, "does not claim as the lease ends");
}

/* P3, R13: after the faults somebody leads, give or take a backoff and a lease. */
void promise_somebody_leads(struct world *world)
{
    unsigned able = 0;
    world->now = ENDS_AT;
    promise_nobody_overlaps(
        world); /* whoever acts now counts, also where nothing happens any more */
    for (unsigned i = 0; i < world->count; i++)
        able += !world->candidates[i].finished;
    if (able > 0 && world->last_acting < ENDS_AT - PEACE_NS)
        promise_broken(world, 0, "nobody leads though nothing is broken any more");
}

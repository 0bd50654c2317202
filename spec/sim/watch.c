#include "watch.h"

#include "base/clock.h"

#define CLAIM_LATE_NS (10 * NS_PER_MS)
#define REFRESH_LATE_NS NS_PER_MS

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool leads(enum election_phase phase)
{
    return phase == ELECTION_LEADING || phase == ELECTION_COOLING;
}

void watch_begin(struct watch *watch)
{
    *watch = (struct watch){.won = watch->won,
                            .stop_at_ns = TIME_NEVER,
                            .kill_at_ns = TIME_NEVER,
                            .claim_due_ns = TIME_NEVER,
                            .refresh_due_ns = TIME_NEVER,
                            .refresh_ns = TIME_NEVER};
}

void watch_told(struct watch *watch, const struct election_event *event)
{
    if (event->type == ELECTION_EVENT_BARRED)
        watch->bars |= 1u << event->bar;
    else if (event->type == ELECTION_EVENT_ALLOWED)
        watch->bars &= ~(1u << event->bar);
}

static const char *claims(struct watch *watch, const struct watched *now)
{
    watch->claim_due_ns = TIME_NEVER;
    if (watch->bars != 0)
        return "claims though it may not lead";
    if (watch->unsure)
        return "claims again before it gave back what it may have got";
    if (now->now_ns < watch->sit_out_ns)
        return "acts on a store that it is to sit out";
    return NULL;
}

static const char *wins(struct watch *watch, const struct watched *now)
{
    if (now->exists)
        return "begins a term while something of an earlier one exists";
    if (watch->won)
        return "won twice without a lost between";
    watch->won = true;
    return NULL;
}

static const char *loses(struct watch *watch)
{
    if (!watch->won)
        return "lost without a won before";
    watch->won = false;
    return NULL;
}

static const char *finishes(const struct watch *watch, const struct watched *now)
{
    if (watch->won)
        return "finishes, but lost was never called";
    if (watch->unsure)
        return "finishes before it gave back what it may have got";
    return now->stopped ? NULL : "finishes though nobody stopped it";
}

static const char *takes_lease(struct watch *watch, const struct watched *now,
                               const struct election_action *action)
{
    watch->stop_at_ns = action->stop_at_ns;
    watch->kill_at_ns = action->kill_at_ns;
    return action->stop_at_ns > now->now_ns ? NULL : "takes a lease that leaves no time to act";
}

static void gives_up_call(struct watch *watch, const struct watched *now)
{
    if (now->in_flight == STORE_CLAIM)
        watch->unsure = now->core->config->has_abdicate;
    if (now->in_flight == STORE_REFRESH)
        watch->refresh_due_ns = clock_add_ns(now->now_ns, watch->refresh_ns);
}

const char *watch_action(struct watch *watch, const struct watched *now,
                         const struct election_action *action)
{
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
        return claims(watch, now);
    case ELECTION_ACTION_CALL_INFO:
        return leads(now->core->phase) ? NULL : claims(watch, now);
    case ELECTION_ACTION_CALL_REFRESH:
        watch->refresh_due_ns = TIME_NEVER;
        return NULL;
    case ELECTION_ACTION_CALL_ABDICATE:
        watch->unsure = false;
        return now->exists ? "releases while something of the term exists" : NULL;
    case ELECTION_ACTION_CANCEL_CALL:
        gives_up_call(watch, now);
        return NULL;
    case ELECTION_ACTION_SET_DEADLINE:
        return takes_lease(watch, now, action);
    case ELECTION_ACTION_START_CHILD:
        return now->child ? "starts a child beside another" : NULL;
    case ELECTION_ACTION_RUN_WON:
        return wins(watch, now);
    case ELECTION_ACTION_RUN_LOST:
        return loses(watch);
    case ELECTION_ACTION_FINISH:
        return finishes(watch, now);
    default:
        return NULL;
    }
}

static void note_grant(struct watch *watch, const struct watched *now,
                       const struct election_event *event, int64_t sent_ns)
{
    watch->refresh_due_ns = TIME_NEVER;
    if (event->grant.epoch != now->core->epoch)
        return; /* another term's: it is not taken */
    watch->refresh_ns = event->grant.refresh_ns;
    watch->refresh_due_ns = clock_add_ns(sent_ns, event->grant.refresh_ns);
    if (watch->refresh_due_ns < now->now_ns)
        watch->refresh_due_ns = clock_add_ns(now->now_ns, event->grant.refresh_ns);
}

static void note_denial(struct watch *watch, const struct watched *now,
                        const struct election_event *event, bool followed)
{
    int64_t ends_ns = clock_add_ns(now->now_ns, event->denial.expires_ns);
    watch->refresh_due_ns = TIME_NEVER;
    if (event->denial.amnesia)
        watch->sit_out_ns = later(watch->sit_out_ns, ends_ns);
    if (followed && now->in_flight == STORE_NOTHING && event->denial.expires_ns >= 0 &&
        now->core->config->monitor_leader)
        watch->claim_due_ns = ends_ns;
}

static void note_answer(struct watch *watch, const struct watched *now,
                        const struct election_event *event, enum store_verb answered,
                        int64_t sent_ns, bool followed)
{
    switch (event->type) {
    case ELECTION_EVENT_GRANTED:
        note_grant(watch, now, event, sent_ns);
        break;
    case ELECTION_EVENT_DENIED:
        note_denial(watch, now, event, followed);
        break;
    case ELECTION_EVENT_EVICTED:
        watch->refresh_due_ns = TIME_NEVER;
        break;
    case ELECTION_EVENT_UNKNOWN:
        if (answered == STORE_REFRESH)
            watch->refresh_due_ns = clock_add_ns(now->now_ns, watch->refresh_ns);
        break;
    default:
        break;
    }
}

static const char *judge_answer(const struct watch *watch, const struct watched *now,
                                const struct election_event *event, enum election_phase before)
{
    enum election_phase phase = now->core->phase;
    if (!leads(before))
        return NULL;
    if (event->type == ELECTION_EVENT_UNKNOWN && now->now_ns < watch->stop_at_ns && !leads(phase))
        return "steps down though nothing is known";
    if (event->type == ELECTION_EVENT_DENIED && (leads(phase) || now->leader_goes_on))
        return "lost for certain, and goes on";
    return NULL;
}

/* Whether the lease is to be kept: in a term, and on the way down from one that was not lost. */
static bool keeps_lease(const struct watched *now)
{
    return leads(now->core->phase) || (now->core->phase == ELECTION_STEPPING && now->exists &&
                                       now->core->last_reason != ELECTION_REASON_EXPIRED);
}

const char *watch_fed(struct watch *watch, const struct watched *now,
                      const struct election_event *event, enum election_phase before,
                      enum store_verb answered, int64_t sent_ns)
{
    bool followed = before == ELECTION_FOLLOWING || before == ELECTION_INIT;
    bool idle = now->in_flight == STORE_NOTHING;
    if (watch->bars != 0 && (leads(now->core->phase) || now->leader_goes_on))
        return "leads though it may not";
    if (answered != STORE_NOTHING) {
        note_answer(watch, now, event, answered, sent_ns, followed);
        const char *broken = judge_answer(watch, now, event, before);
        if (broken != NULL)
            return broken;
    }
    if (idle && keeps_lease(now) && now->now_ns < watch->kill_at_ns &&
        now->now_ns > clock_add_ns(watch->refresh_due_ns, REFRESH_LATE_NS))
        return "lets a refresh fall due";
    if (now->core->phase != ELECTION_FOLLOWING) {
        watch->claim_due_ns = TIME_NEVER;
        return NULL;
    }
    if (idle && !watch->unsure && !now->core->stop && watch->bars == 0 &&
        now->now_ns > clock_add_ns(later(watch->claim_due_ns, watch->sit_out_ns), CLAIM_LATE_NS))
        return "does not claim as the lease ends";
    return NULL;
}

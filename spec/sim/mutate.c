#include "mutate.h"

#include <string.h>

#include "base/clock.h"

#define MUTATION_NAME(name, text) text,
static const char *const names[] = {MUTATIONS(MUTATION_NAME)};

const char *mutation_name(enum mutation mutation)
{
    return names[mutation];
}

enum mutation mutation_find(const char *name)
{
    unsigned i = 0;
    while (i < MUTATION_COUNT && strcmp(name, names[i]) != 0)
        i++;
    return (enum mutation)i;
}

static bool leads(const struct election *core)
{
    return core->phase == ELECTION_LEADING || core->phase == ELECTION_COOLING;
}

static bool follows(const struct election *core)
{
    return core->phase == ELECTION_INIT || core->phase == ELECTION_FOLLOWING;
}

void mutate_before(enum mutation mutation, struct election *core, struct election_event *event)
{
    bool answers = event->attempt == core->call.attempt;
    switch (mutation) {
    case MUTATE_UNKNOWN_IS_LOST:
        if (event->type == ELECTION_EVENT_UNKNOWN && leads(core))
            event->type = ELECTION_EVENT_DENIED;
        break;
    case MUTATE_LATE_LOSS:
        if (event->type == ELECTION_EVENT_DENIED && leads(core))
            event->type = ELECTION_EVENT_UNKNOWN;
        break;
    case MUTATE_UNSURE_CLAIM:
        if (event->type == ELECTION_EVENT_UNKNOWN && follows(core) && answers &&
            core->call.kind == ELECTION_CALL_CLAIM)
            event->type = ELECTION_EVENT_EVICTED; /* says of no holder when to ask again */
        break;
    case MUTATE_UNSURE_MESSAGE:
        if (event->type == ELECTION_EVENT_UNKNOWN && follows(core) && answers &&
            core->call.kind == ELECTION_CALL_INFO)
            event->type = ELECTION_EVENT_NOTHING;
        break;
    case MUTATE_STALE_CLAIM:
        if (event->type == ELECTION_EVENT_GRANTED && follows(core) && answers)
            core->call.sent_ns = event->at_ns - NS_PER_MS;
        break;
    case MUTATE_MESSAGE_ENDS_SIT_OUT:
        if (event->type == ELECTION_EVENT_MESSAGE)
            core->claim_not_before_ns = 0;
        break;
    case MUTATE_FORGETTING_BELIEVED:
        if (event->type == ELECTION_EVENT_GRANTED)
            core->highest_epoch = 0;
        break;
    case MUTATE_BARRED_CLAIMS:
        if (event->type == ELECTION_EVENT_BARRED && !leads(core))
            event->type = ELECTION_EVENT_TIMER;
        break;
    case MUTATE_BARRED_LEADS:
        if (event->type == ELECTION_EVENT_BARRED && leads(core))
            event->type = ELECTION_EVENT_TIMER;
        break;
    case MUTATE_NEVER_ALLOWED:
        if (event->type == ELECTION_EVENT_ALLOWED)
            event->type = ELECTION_EVENT_TIMER;
        break;
    case MUTATE_GIVES_UP:
        if (event->type == ELECTION_EVENT_DENIED)
            core->stop = true;
        break;
    default:
        break;
    }
}

void mutate_after(enum mutation mutation, struct election *core, int64_t now_ns)
{
    switch (mutation) {
    case MUTATE_NO_ROOM:
        if (leads(core) && core->refresh_at_ns != TIME_NEVER)
            core->refresh_at_ns = core->stop_at_ns;
        break;
    case MUTATE_LOST_OUTLIVES:
        if (core->stage == ELECTION_STAGE_LOST)
            core->lost_over = true;
        break;
    case MUTATE_TREE_GIVEN_UP:
        if (core->stage == ELECTION_STAGE_LOST && now_ns >= core->kill_at_ns) {
            core->term_gone = true;
            core->child.running = false;
        }
        break;
    case MUTATE_LATE_FOLLOWER:
        if (core->watching && core->next_claim_ns != TIME_NEVER) {
            core->watching = false;
            core->next_claim_ns += core->config->retry_ns;
        }
        break;
    case MUTATE_NO_REFRESH_STEPPING:
        if (core->phase == ELECTION_STEPPING)
            core->refresh_at_ns = TIME_NEVER;
        break;
    default:
        break;
    }
}

static int64_t margin_ns(const struct election *core, int64_t ttl_ns)
{
    struct election_schedule schedule;
    (void)timing_schedule(&core->config->timing, ttl_ns, core->refresh_ns, &schedule, NULL);
    return schedule.margin_ns;
}

int64_t mutate_instant(enum mutation mutation, const struct election *core, int64_t at_ns,
                       const struct mutate_clock *clock)
{
    if (at_ns == TIME_NEVER)
        return at_ns;
    switch (mutation) {
    case MUTATE_LATE_ANCHOR:
        return at_ns + clock->now_ns - clock->sent_ns;
    case MUTATE_NO_MARGIN:
        return at_ns + margin_ns(core, clock->ttl_ns);
    case MUTATE_NO_LEAD:
        return at_ns + core->deadline_ns - core->kill_at_ns;
    case MUTATE_FOREIGN_CLOCK:
        return at_ns - clock->now_ns + clock->foreign_ns;
    default:
        return at_ns;
    }
}

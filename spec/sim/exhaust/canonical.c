/* One form for what is the same, so that a state that comes again is the same bytes. */
#include <string.h>

#include "world.h"

#define CLAIM_BASE 1000
#define BEHIND_MOST 3 /* how far behind the newest an epoch or a number is told apart */

static void shift(int64_t *at_ns, int64_t by_ns)
{
    if (*at_ns != TIME_NEVER)
        *at_ns -= by_ns;
}

/* What is past is past, however long since. */
static void clamp(int64_t *at_ns, int64_t least_ns)
{
    if (*at_ns < least_ns)
        *at_ns = least_ns;
}

/* Looked at from step to step, an instant between two is the later one. */
static void round_up(int64_t *at_ns)
{
    if (*at_ns != TIME_NEVER)
        *at_ns = (*at_ns + STEP_NS - 1) / STEP_NS * STEP_NS;
}

#define CORE_INSTANTS(core)                                                                        \
    {                                                                                              \
        &(core)->next_claim_ns, &(core)->claim_not_before_ns, &(core)->refresh_at_ns,              \
            &(core)->stop_at_ns, &(core)->kill_at_ns, &(core)->deadline_ns,                        \
            &(core)->cool_until_ns, &(core)->reclaim_ns, &(core)->lost_until_ns,                   \
            &(core)->child.start_at_ns, &(core)->armed_ns, &(core)->call.until_ns                  \
    }
#define HALF_INSTANTS(half)                                                                        \
    {                                                                                              \
        &(half)->kill_at_ns, &(half)->stop_kill_ns, &(half)->deadline_ns,                          \
            &(half)->watch.stop_at_ns, &(half)->watch.kill_at_ns, &(half)->watch.sit_out_ns,       \
            &(half)->watch.claim_due_ns, &(half)->watch.refresh_due_ns                             \
    }
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

void canonical_shift(struct model *model, int64_t by_ns)
{
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        struct half *half = &model->halves[who];
        int64_t *of_core[] = CORE_INSTANTS(&half->core);
        int64_t *of_half[] = HALF_INSTANTS(half);
        for (size_t i = 0; i < COUNT(of_core); i++)
            shift(of_core[i], by_ns);
        for (size_t i = 0; i < COUNT(of_half); i++)
            shift(of_half[i], by_ns);
        half->core.call.sent_ns -= by_ns;
        half->sent_ns -= by_ns;
    }
    model->store.ends_ns -= by_ns;
    model->doubted_ns -= by_ns;
}

static uint64_t behind(uint64_t number, uint64_t newest, uint64_t base)
{
    if (number == 0)
        return 0;
    uint64_t by = newest > number ? newest - number : 0;
    return base - (by < BEHIND_MOST ? by : BEHIND_MOST);
}

/* A store that went back gives out epochs that are older than those that are known. */
static uint64_t newest_epoch(const struct model *model)
{
    uint64_t newest = model->store.epoch;
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++)
        if (model->halves[who].core.highest_epoch > newest)
            newest = model->halves[who].core.highest_epoch;
    return newest;
}

static void canonical_numbers(struct model *model)
{
    uint64_t newest = newest_epoch(model);
    uint64_t owners = model->halves[model->store.owner].claim;
    model->store.claim = model->store.held ? behind(model->store.claim, owners, CLAIM_BASE) : 0;
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        struct half *half = &model->halves[who];
        half->core.epoch = behind(half->core.epoch, newest, EPOCH_BASE);
        half->core.highest_epoch = behind(half->core.highest_epoch, newest, EPOCH_BASE);
        half->reply.epoch = half->replied ? behind(half->reply.epoch, newest, EPOCH_BASE) : 0;
        for (unsigned i = 0; i < MODEL_REQUESTS; i++)
            half->requests[i].claim =
                half->requests[i].verb == STORE_NOTHING
                    ? 0
                    : behind(half->requests[i].claim, half->claim, CLAIM_BASE);
        half->claim = CLAIM_BASE;
    }
    model->last_epoch = behind(model->last_epoch, newest, EPOCH_BASE);
    model->store.epoch = behind(model->store.epoch, newest, EPOCH_BASE);
}

static void canonical_half(struct half *half)
{
    struct election *core = &half->core;
    int64_t *of_core[] = CORE_INSTANTS(core);
    int64_t *of_half[] = HALF_INSTANTS(half);
    if (!half->up) { /* a runtime that is dead remembers nothing */
        memset(core, 0, sizeof(*core));
        watch_begin(&half->watch);
        half->in_flight = STORE_NOTHING;
    }
    for (size_t i = 0; i < COUNT(of_core); i++)
        clamp(of_core[i], NOW_NS);
    for (size_t i = 0; i < COUNT(of_half); i++)
        clamp(of_half[i], NOW_NS - STEP_NS); /* that it was due before now is seen */
    int64_t *rounded[] = {&core->next_claim_ns, &core->refresh_at_ns, &core->lost_until_ns,
                          &core->armed_ns,      &core->reclaim_ns,    &core->claim_not_before_ns};
    for (size_t i = 0; i < COUNT(rounded); i++)
        round_up(rounded[i]);
    core->since_ns = 0;
    clamp(&core->call.sent_ns, NOW_NS - TTL_NS); /* too old for any use, however old */
    clamp(&half->sent_ns, NOW_NS - TTL_NS);
    core->random.state = 0;
    core->terms = 0;
    core->call.attempt = 1;
    if (core->call.kind == ELECTION_CALL_NONE)
        core->call.sent_ns = core->call.until_ns = 0;
    if (half->in_flight == STORE_NOTHING)
        half->sent_ns = 0;
    if (core->stage == ELECTION_STAGE_NONE) {
        core->reason = core->last_reason = ELECTION_REASON_NONE;
        core->reclaim_ns = 0;
        core->epoch = 0;
        half->watch.stop_at_ns = half->watch.kill_at_ns = TIME_NEVER;
        half->watch.refresh_due_ns = TIME_NEVER;
    }
    if (!half->replied)
        memset(&half->reply, 0, sizeof(half->reply));
    bool runs = half->child != PROCESS_NONE || half->command != PROCESS_NONE;
    if (!runs && !half->tasks && !half->lost && core->stage == ELECTION_STAGE_NONE)
        half->kill_at_ns = half->deadline_ns = TIME_NEVER;
    if (half->child == PROCESS_NONE)
        half->stop_kill_ns = TIME_NEVER;
    if (half->child != PROCESS_DYING)
        half->child_age = 0;
    if (half->command != PROCESS_DYING)
        half->command_age = 0;
}

void canonical_form(struct model *model)
{
    if (model->store.ends_ns <= NOW_NS)
        model->store.held = false; /* nobody holds a lease that is over */
    if (!model->store.held) {
        model->store.ends_ns = 0;
        model->store.owner = 0;
        model->store.evict = false;
    }
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++)
        canonical_half(&model->halves[who]);
    clamp(&model->doubted_ns, NOW_NS);
    canonical_numbers(model);
}

void model_mirror(struct model *model)
{
    struct half first = model->halves[0];
    model->halves[0] = model->halves[1];
    model->halves[1] = first;
    if (model->store.held)
        model->store.owner = 1 - model->store.owner;
}

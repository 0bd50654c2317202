/* Which moves there are in a state. */
#include <stdlib.h>

#include "world.h"

#define LEAD_STEPS 1 /* in which a killed tree is dead */

struct list_of_moves {
    struct move *moves;
    unsigned count;
    bool urgent; /* something has to happen before time goes on */
};

static void add(struct list_of_moves *list, enum move_kind kind, unsigned who, unsigned which)
{
    if (list->count == MODEL_MOVES_MAX)
        abort();
    list->moves[list->count++] = (struct move){(uint8_t)kind, (uint8_t)who, (uint8_t)which};
}

static void add_urgent(struct list_of_moves *list, enum move_kind kind, unsigned who)
{
    add(list, kind, who, 0);
    list->urgent = true;
}

static void moves_of_runtime(const struct half *half, unsigned who, struct list_of_moves *list)
{
    if (half->paused) {
        add(list, MOVE_RESUME, who, 0);
        return;
    }
    if (half->core.armed_ns <= NOW_NS)
        add_urgent(list, MOVE_TIMER, who);
    if (half->tell_child_gone)
        add_urgent(list, MOVE_CHILD_GONE, who);
    if (half->tell_term_gone)
        add_urgent(list, MOVE_TERM_GONE, who);
    if (half->tell_lost_done)
        add_urgent(list, MOVE_LOST_DONE, who);
    if (half->watch.bars != 0)
        add(list, MOVE_ALLOW, who, 0);
    if (half->lost)
        add(list, MOVE_LOST_RETURNS, who, 0);
    if (half->replied) {
        add(list, MOVE_REPLY, who, 0);
        list->urgent |= half->reply_age >= run.bounds.delay;
    }
}

static void moves_of_world(const struct half *half, unsigned who, struct list_of_moves *list)
{
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        if (half->requests[i].verb != STORE_NOTHING) {
            add(list, MOVE_SERVE, who, i);
            list->urgent |= half->requests[i].age >= run.bounds.delay;
        }
    if (half->child == PROCESS_STOPPING || half->child == PROCESS_DYING ||
        half->child == PROCESS_STUCK)
        add(list, MOVE_CHILD_DIES, who, 0);
    if (half->command == PROCESS_STOPPING || half->command == PROCESS_DYING ||
        half->command == PROCESS_STUCK)
        add(list, MOVE_COMMAND_DIES, who, 0);
    list->urgent |= half->child == PROCESS_DYING && half->child_age >= LEAD_STEPS;
    list->urgent |= half->command == PROCESS_DYING && half->command_age >= LEAD_STEPS;
    if (!half->up && !half->finished && half->child == PROCESS_NONE &&
        half->command == PROCESS_NONE)
        add(list, MOVE_START, who, 0);
}

static void faults_of(const struct half *half, unsigned who, struct list_of_moves *list)
{
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        if (half->requests[i].verb != STORE_NOTHING)
            add(list, MOVE_LOSE_REQUEST, who, i);
    if (half->child == PROCESS_DYING)
        add(list, MOVE_STUCK, who, 0);
    if (half->command == PROCESS_DYING)
        add(list, MOVE_STUCK, who, 1);
    if (!half->up || half->finished)
        return;
    add(list, MOVE_CRASH, who, 0);
    if (half->paused)
        return;
    add(list, MOVE_PAUSE, who, 0);
    if (half->replied) {
        add(list, MOVE_LOSE_REPLY, who, 0);
        if (half->in_flight != STORE_RELEASE)
            add(list, MOVE_UNKNOWN, who, 0);
    }
    if (half->child == PROCESS_RUNS)
        add(list, MOVE_CHILD_FAILS, who, 0);
    if (half_leads(half))
        add(list, MOVE_ABDICATE, who, 0);
    if (half->watch.bars == 0)
        add(list, MOVE_BAR, who, 0);
    if (!half->stopped)
        add(list, MOVE_STOP, who, 0);
    if (half->core.messages == 0)
        add(list, MOVE_MESSAGE, who, 0);
}

/* Who does not know cannot see that the store went back. */
static bool knows_newest(const struct model *model, unsigned who)
{
    const struct half *half = &model->halves[who];
    return half->up && !half->finished && !half->doubts && model->doubted_ns <= NOW_NS &&
           half->core.highest_epoch >= model->store.epoch;
}

unsigned model_moves(const struct model *model, struct move moves[MODEL_MOVES_MAX])
{
    struct list_of_moves list = {.moves = moves};
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        const struct half *half = &model->halves[who];
        if (half->up && !half->finished)
            moves_of_runtime(half, who, &list);
        moves_of_world(half, who, &list);
        if (model->faults > 0)
            faults_of(half, who, &list);
    }
    if (model->faults > 0 && model->store.held && !model->store.evict)
        add(&list, MOVE_EVICT, 0, 0);
    if (model->faults > 0 && model->store.held && !model->halves[0].doubts &&
        !model->halves[1].doubts)
        add(&list, MOVE_FORGET, 0, 0);
    if (model->faults > 0 && model->store.held && knows_newest(model, 0) && knows_newest(model, 1))
        add(&list, MOVE_GO_BACK, 0, 0);
    if (!list.urgent)
        add(&list, MOVE_STEP, 0, 0);
    return list.count;
}

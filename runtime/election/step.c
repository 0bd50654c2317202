/* What a step writes down: actions, notices, and the phase. */
#include <assert.h>

#include "election/internal.h"

struct election_action *step_act(struct step *step, enum election_action_type type)
{
    assert(step->out->count < ELECTION_MAX_ACTIONS);
    struct election_action *action = &step->out->item[step->out->count++];
    *action = (struct election_action){.type = type, .epoch = step->election->epoch};
    return action;
}

void step_emit(struct step *step, enum election_notice notice)
{
    step_act(step, ELECTION_ACTION_EMIT)->notice = notice;
}

void step_phase(struct step *step, enum election_phase phase)
{
    step->election->phase = phase;
    step->election->since_ns = step->now;
}

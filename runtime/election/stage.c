/* How far a term has come. Every change goes through stage_enter, which knows the legal ones and
 * takes away what only the stage before had. */
#include <assert.h>

#include "base/clock.h"
#include "election/internal.h"

#define AFTER(stage) (1u << ELECTION_STAGE_##stage)

/* Which stages may come before each. */
static const unsigned predecessors[ELECTION_STAGE_COUNT] = {
    [ELECTION_STAGE_NONE] = AFTER(HELD) | AFTER(LOST) | AFTER(RELEASING),
    [ELECTION_STAGE_HELD] = AFTER(NONE),
    [ELECTION_STAGE_ACTING] = AFTER(HELD),
    [ELECTION_STAGE_CHILD] = AFTER(ACTING),
    [ELECTION_STAGE_CLOSING] = AFTER(CHILD),
    [ELECTION_STAGE_LOST] = AFTER(CLOSING) | AFTER(NONE), /* owed by the runtime before */
    [ELECTION_STAGE_RELEASING] = AFTER(HELD) | AFTER(LOST),
};

/* Nothing of the term is left that these would bound. */
static void forget_instants(struct election *election)
{
    election->refresh_at_ns = election->stop_at_ns = TIME_NEVER;
    election->kill_at_ns = election->deadline_ns = TIME_NEVER;
}

void stage_enter(struct step *step, enum election_stage stage)
{
    struct election *election = step->election;
    assert((predecessors[stage] & 1u << election->stage) != 0);
    election->stage = stage;
    if (stage == ELECTION_STAGE_HELD) {
        election->hold = ELECTION_HOLD_YES;
        election->term_gone = election->lost_over = false;
    }
    if (stage == ELECTION_STAGE_RELEASING || stage == ELECTION_STAGE_NONE)
        forget_instants(election);
}

void hold_perhaps(struct step *step)
{
    struct election *election = step->election;
    if (election->hold == ELECTION_HOLD_NO && election->config->has_abdicate)
        election->hold = ELECTION_HOLD_PERHAPS;
}

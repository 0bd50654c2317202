/* The oracle call in flight: one at a time, each with a fresh attempt and a bound. */
#include <assert.h>

#include "base/clock.h"
#include "election/internal.h"

#define TERM_CALL_LEAST_NS NS_PER_S

void call_start(struct step *step, enum election_call kind, int64_t until_ns)
{
    static const enum election_action_type actions[] = {
        [ELECTION_CALL_CLAIM] = ELECTION_ACTION_CALL_CLAIM,
        [ELECTION_CALL_REFRESH] = ELECTION_ACTION_CALL_REFRESH,
        [ELECTION_CALL_INFO] = ELECTION_ACTION_CALL_INFO,
        [ELECTION_CALL_ABDICATE] = ELECTION_ACTION_CALL_ABDICATE,
    };
    struct election *election = step->election;
    assert(election->call.kind == ELECTION_CALL_NONE);
    election->call.kind = kind;
    election->call.attempt++;
    election->call.sent_ns = step->now;
    election->call.until_ns = until_ns;
    struct election_action *action = step_act(step, actions[kind]);
    action->attempt = election->call.attempt;
    action->until_ns = until_ns;
}

void call_ended(struct step *step)
{
    struct election *election = step->election;
    if (election->call.kind == ELECTION_CALL_ABDICATE)
        election->hold = ELECTION_HOLD_NO; /* it was tried; else the lease runs out by itself */
    election->call.kind = ELECTION_CALL_NONE;
}

void call_cancel(struct step *step)
{
    struct election *election = step->election;
    enum election_call kind = election->call.kind;
    if (kind == ELECTION_CALL_NONE)
        return;
    /* A claim that we do not wait for may have been granted all the same; handle_info claims too.
     */
    if (kind == ELECTION_CALL_CLAIM || kind == ELECTION_CALL_INFO) /* same (always): others hold */
        hold_perhaps(step);
    (void)step_act(step, ELECTION_ACTION_CANCEL_CALL);
    call_ended(step);
}

void call_release(struct step *step)
{
    struct election *election = step->election;
    /* Never while anything of the term may run (rule 4): stage_enter lets no other stage come here.
     */
    assert(election->stage == ELECTION_STAGE_NONE || election->stage == ELECTION_STAGE_RELEASING);
    assert(election->hold != ELECTION_HOLD_NO);
    election->left = election->stop;
    call_start(step, ELECTION_CALL_ABDICATE,
               clock_add_ns(step->now, election->config->call_timeout_ns));
}

int64_t call_term_until(const struct step *step)
{
    const struct election *election = step->election;
    int64_t until_ns = clock_add_ns(step->now, election->config->call_timeout_ns);
    int64_t left_ns = election->stop_at_ns - step->now;
    int64_t budget_ns = later(left_ns / 2, earlier(left_ns, TERM_CALL_LEAST_NS));
    return earlier(until_ns, step->now + budget_ns);
}

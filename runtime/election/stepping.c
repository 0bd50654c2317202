/* Stepping down: the child's tree gone, all else of the term gone, `lost`, the lease given back. */
#include "base/clock.h"
#include "election/internal.h"

static int64_t stand_back(const struct election *election, enum election_reason reason)
{
    switch (reason) {
    case ELECTION_REASON_CHILD_FAILED:
    case ELECTION_REASON_HANDLER_FAILED:
        return election->config->restart_within_ns; /* let another node try */
    case ELECTION_REASON_DENIED:
    case ELECTION_REASON_PAUSED: /* the order itself says who may claim, and when */
    case ELECTION_REASON_HANDOVER:
        return 0;
    case ELECTION_REASON_EVICTED:
    case ELECTION_REASON_ABDICATED:
    case ELECTION_REASON_CHILD_KILLED:
    case ELECTION_REASON_UNHEALTHY:
    case ELECTION_REASON_WINDOW:
        return later(election->config->stand_back_ns, election->config->retry_ns);
    default:
        return election->config->retry_ns;
    }
}

/* Whether the lease was given up while it was ours, so that another candidate should have it. */
static bool lets_go(enum election_reason reason)
{
    return reason == ELECTION_REASON_EVICTED || reason == ELECTION_REASON_ABDICATED ||
           reason == ELECTION_REASON_UNHEALTHY || reason == ELECTION_REASON_WINDOW ||
           reason == ELECTION_REASON_PAUSED || reason == ELECTION_REASON_HANDOVER ||
           reason == ELECTION_REASON_CHILD_FAILED || reason == ELECTION_REASON_CHILD_KILLED ||
           reason == ELECTION_REASON_HANDLER_FAILED;
}

void stepping_begin(struct step *step, enum election_reason reason)
{
    struct election *election = step->election;
    step_phase(step, ELECTION_STEPPING);
    election->reason = election->last_reason = reason;
    election->reclaim_ns = clock_add_ns(step->now, stand_back(election, reason));
    election->child.start_at_ns = TIME_NEVER;
    /* A refresh under way is still of use while the child is stopped (rule 9). None is when the
     * lease has run out: call_term_until. */
    if (election->call.kind != ELECTION_CALL_REFRESH)
        call_cancel(step);
    struct election_action *action = step_act(step, ELECTION_ACTION_EMIT);
    action->notice = ELECTION_NOTICE_LOST;
    action->reason = reason;
    if (election->stage != ELECTION_STAGE_ACTING)
        return; /* nothing of this term has begun to run */
    stage_enter(step, ELECTION_STAGE_CHILD);
    child_end(step);
}

void stepping_granted(struct step *step)
{
    const struct election *election = step->election;
    const uint64_t epoch = step->event->grant.epoch;
    if ((epoch != 0 && epoch != election->epoch) || election->hold != ELECTION_HOLD_YES)
        return;
    (void)lease_refreshed(step);
}

void stepping_denied(struct step *step)
{
    (void)lease_denied(step);
    step->election->hold = ELECTION_HOLD_NO;
}

/* Whether nothing that the term started exists any more. */
static bool is_gone(const struct election *election)
{
    return election->term_gone && !election->child.running;
}

static void close_term(struct step *step)
{
    stage_enter(step, ELECTION_STAGE_CLOSING);
    (void)step_act(step, ELECTION_ACTION_CLOSE_TERM);
}

static void run_lost(struct step *step)
{
    struct election *election = step->election;
    int64_t bound_ns = election->kill_at_ns;
    stage_enter(step, ELECTION_STAGE_LOST);
    if (step->now >= bound_ns) /* late: half of what is left, or the full time where nothing is */
        bound_ns = step->now < election->deadline_ns
                       ? step->now + (election->deadline_ns - step->now) / 2
                       : TIME_NEVER;
    election->lost_until_ns =
        earlier(bound_ns, clock_add_ns(step->now, election->config->lost_timeout_ns));
    struct election_action *action = step_act(step, ELECTION_ACTION_RUN_LOST);
    action->until_ns = election->lost_until_ns;
    action->reason = election->reason;
}

/* Nothing of that term exists any more, and the lease is whoever's it is by now. What the next term
 * begins must not meet the `lost` of the one before. */
void stepping_owed(struct step *step)
{
    struct election *election = step->election;
    step_phase(step, ELECTION_STEPPING);
    election->reason = election->last_reason = ELECTION_REASON_RUNTIME_DIED;
    election->reclaim_ns = clock_add_ns(step->now, election->claim_delay_ns);
    lease_sit_out(step, election->reclaim_ns);
    election->term_gone = true;
    run_lost(step);
}

static void close_lost(struct step *step)
{
    step->election->lost_until_ns = TIME_NEVER;
    (void)step_act(step, ELECTION_ACTION_CLOSE_LOST);
}

static void leave(struct step *step)
{
    struct election *election = step->election;
    stage_enter(step, ELECTION_STAGE_NONE);
    election->next_claim_ns = election->reclaim_ns;
    /* From now on, not from when it began: the others hear of it only now. */
    if (lets_go(election->reason))
        lease_sit_out(step, clock_add_ns(step->now, stand_back(election, election->reason)));
    election->child.restarts = 0;
    /* Nothing was asked yet by a runtime that only had to tell of the term before it. */
    bool asked = election->reason != ELECTION_REASON_RUNTIME_DIED;
    election->child.waits = election->config->has_follower_child && !asked;
    bool due = election->config->has_follower_child && asked &&
               (!election->child.running || election->child.stopping);
    election->child.start_at_ns = due ? step->now : TIME_NEVER;
    step_phase(step, ELECTION_FOLLOWING);
}

/* Nothing of the term is left, so nothing is left for the dead-man timer to cut: a release that
 * takes long must not cost a runtime that is well. */
static void settle_lease(struct step *step)
{
    struct election *election = step->election;
    call_cancel(step);
    (void)step_act(step, ELECTION_ACTION_CLEAR_DEADLINE);
    if (election->hold == ELECTION_HOLD_NO || !election->config->has_abdicate) {
        election->hold = ELECTION_HOLD_NO;
        leave(step);
        return;
    }
    stage_enter(step, ELECTION_STAGE_RELEASING);
    call_release(step);
}

static void refresh_on(struct step *step)
{
    struct election *election = step->election;
    if (election->call.kind != ELECTION_CALL_NONE || step->now < election->refresh_at_ns)
        return;
    election->refresh_at_ns = TIME_NEVER;
    if (election->hold != ELECTION_HOLD_YES || election->reason == ELECTION_REASON_EXPIRED ||
        step->now >= election->kill_at_ns)
        return;
    int64_t until_ns = clock_add_ns(step->now, election->config->call_timeout_ns);
    call_start(step, ELECTION_CALL_REFRESH, earlier(until_ns, election->kill_at_ns));
}

void stepping_settle(struct step *step)
{
    struct election *election = step->election;
    bool late = step->now >= election->kill_at_ns;
    if (election->stage == ELECTION_STAGE_CHILD && (!election->child.running || late))
        close_term(step);
    if (election->stage == ELECTION_STAGE_CLOSING && (is_gone(election) || late))
        run_lost(step);
    if (election->stage == ELECTION_STAGE_LOST && step->now >= election->lost_until_ns)
        close_lost(step);
    if (election->stage == ELECTION_STAGE_HELD ||
        (election->stage == ELECTION_STAGE_LOST && election->lost_over && is_gone(election)))
        settle_lease(step);
    else if (election->stage != ELECTION_STAGE_RELEASING)
        refresh_on(step);
    else if (election->call.kind == ELECTION_CALL_NONE)
        leave(step);
}

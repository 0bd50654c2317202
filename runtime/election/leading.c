/* Leading: refreshing the lease, and knowing when it is lost. */
#include "base/clock.h"
#include "election/internal.h"

/* The follower's child goes before the leader's comes. */
static void begin_acting(struct step *step)
{
    struct election *election = step->election;
    step_phase(step, ELECTION_LEADING);
    child_end(step);
    election->child.restarts = 0;
    election->child.start_at_ns = election->config->has_child ? step->now : TIME_NEVER;
}

void leading_begin(struct step *step)
{
    struct election *election = step->election;
    stage_enter(step, ELECTION_STAGE_HELD);
    election->last_reason = ELECTION_REASON_NONE;
    lease_tell(step);
    step_emit(step, ELECTION_NOTICE_CLAIMED);
    int64_t cool_down_ns = later(election->config->cool_down_ns, step->event->grant.cool_down_ns);
    if (cool_down_ns == 0) {
        begin_acting(step);
        return;
    }
    step_phase(step, ELECTION_COOLING);
    election->cool_until_ns = clock_add_ns(step->now, cool_down_ns);
}

void leading_granted(struct step *step)
{
    struct election *election = step->election;
    const uint64_t epoch = step->event->grant.epoch;
    if (epoch != 0 && epoch != election->epoch) {
        /* Another term of ours, so this one ended unseen: somebody else may have led in between. */
        step_emit(step, ELECTION_NOTICE_CONFLICT);
        election->highest_epoch = higher(election->highest_epoch, epoch);
        stepping_begin(step, ELECTION_REASON_DENIED);
        return;
    }
    if (lease_refreshed(step))
        step_emit(step, ELECTION_NOTICE_REFRESHED);
}

void leading_denied(struct step *step)
{
    struct election *election = step->election;
    int64_t expires_ns = step->event->denial.expires_ns;
    (void)lease_denied(step);
    election->hold = ELECTION_HOLD_NO;
    stepping_begin(step, ELECTION_REASON_DENIED);
    election->reclaim_ns =
        clock_add_ns(step->now, expires_ns >= 0 ? expires_ns : step->event->denial.retry_ns);
}

void leading_evicted(struct step *step)
{
    step->election->refresh_at_ns = step->now; /* that answer may not have prolonged it (rule 9) */
    step_emit(step, ELECTION_NOTICE_EVICTED);
    stepping_begin(step, ELECTION_REASON_EVICTED);
}

/* When the follower's child is gone the term begins to act. */
static void settle_acting(struct step *step)
{
    struct election *election = step->election;
    if (election->child.running)
        return;
    if (election->stage == ELECTION_STAGE_HELD) {
        stage_enter(step, ELECTION_STAGE_ACTING);
        (void)step_act(step, ELECTION_ACTION_RUN_WON);
    }
    if (child_due(step))
        child_begin(step, ELECTION_ROLE_LEADER);
}

void leading_settle(struct step *step)
{
    struct election *election = step->election;
    if (step->now >= election->stop_at_ns) {
        stepping_begin(step, ELECTION_REASON_EXPIRED);
        return;
    }
    if (election->phase == ELECTION_COOLING && step->now >= election->cool_until_ns) {
        step_emit(step, ELECTION_NOTICE_ACTING);
        begin_acting(step);
    }
    if (election->phase == ELECTION_LEADING)
        settle_acting(step);
    if (election->call.kind != ELECTION_CALL_NONE)
        return;
    /* The refresh first: messages without end must not cost the lease. */
    if (step->now >= election->refresh_at_ns) {
        election->refresh_at_ns = TIME_NEVER;
        call_start(step, ELECTION_CALL_REFRESH, call_term_until(step));
    } else if (election->messages > 0) {
        election->messages--;
        call_start(step, ELECTION_CALL_INFO, call_term_until(step));
    }
}

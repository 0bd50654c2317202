/* Stepping down, in this order: the child's tree gone, the term's tasks cancelled, `lost`, the
 * lease released. */
#include <assert.h>

#include "base/clock.h"
#include "election/internal.h"

static int64_t reclaim_after(const struct election *election, enum election_reason reason)
{
    switch (reason) {
    case ELECTION_REASON_CHILD_FAILED:
        return election->config.restart_within_ns; /* stand back: let another node try */
    case ELECTION_REASON_DENIED:
        return 0;
    default:
        return election->config.retry_ns;
    }
}

/* Whether the lease was given up while it was ours, so that another candidate should have it. */
static bool lets_go(enum election_reason reason)
{
    return reason == ELECTION_REASON_EVICTED || reason == ELECTION_REASON_ABDICATED ||
           reason == ELECTION_REASON_CHILD_FAILED;
}

void stepping_begin(struct step *step, enum election_reason reason, bool ours)
{
    struct election *election = step->election;
    bool refreshing = election->call.kind == ELECTION_CALL_REFRESH;
    step_phase(step, ELECTION_STEPPING);
    election->reason = election->last_reason = reason;
    election->ours = ours;
    election->reclaim_ns = clock_add_ns(step->now, reclaim_after(election, reason));
    election->child.start_at_ns = TIME_NEVER;
    /* A refresh under way is still of use while the child is stopped (rule 9). */
    if (!refreshing || !ours || reason == ELECTION_REASON_EXPIRED)
        call_cancel(step);
    struct election_action *action = step_act(step, ELECTION_ACTION_EMIT);
    action->notice = ELECTION_NOTICE_LOST;
    action->reason = reason;
    child_end(step);
    if (!election->acting) {
        election->cut = true; /* nothing of this term has begun to run */
        election->lost = ELECTION_LOST_DONE;
    }
}

void stepping_granted(struct step *step)
{
    struct election *election = step->election;
    struct election_schedule schedule;
    const uint64_t epoch = step->event->grant.epoch;
    if ((epoch != 0 && epoch != election->epoch) || !election->ours)
        return;
    if (timing_schedule(&election->config.timing, step->event->grant.ttl_ns,
                        step->event->grant.refresh_ns, &schedule, NULL) == 0 &&
        lease_take(step, &schedule, election->call.sent_ns))
        lease_tell(step);
}

/* Lua of the term ends when the child's tree is gone, and at the kill instant in any case. */
static void settle_tasks(struct step *step)
{
    struct election *election = step->election;
    if (election->cut || (election->child.running && step->now < election->kill_at_ns))
        return;
    election->cut = true;
    (void)step_act(step, ELECTION_ACTION_CANCEL_TASKS);
    int64_t bound_ns = election->kill_at_ns;
    if (step->now >= bound_ns) /* late: half of what is left, or the full time where nothing is */
        bound_ns = step->now < election->deadline_ns
                       ? step->now + (election->deadline_ns - step->now) / 2
                       : TIME_NEVER;
    election->lost = ELECTION_LOST_RUNNING;
    election->lost_until_ns =
        earlier(bound_ns, clock_add_ns(step->now, election->config.lost_timeout_ns));
    struct election_action *action = step_act(step, ELECTION_ACTION_RUN_LOST);
    action->until_ns = election->lost_until_ns;
    action->reason = election->reason;
}

static void settle_lost(struct step *step)
{
    struct election *election = step->election;
    if (election->lost == ELECTION_LOST_RUNNING && step->now >= election->lost_until_ns)
        election->lost = ELECTION_LOST_DONE;
}

static void refresh_on(struct step *step)
{
    struct election *election = step->election;
    if (election->call.kind != ELECTION_CALL_NONE || step->now < election->refresh_at_ns)
        return;
    election->refresh_at_ns = TIME_NEVER;
    if (!election->ours || election->reason == ELECTION_REASON_EXPIRED ||
        step->now >= election->kill_at_ns)
        return;
    int64_t until_ns = clock_add_ns(step->now, election->config.call_timeout_ns);
    call_start(step, ELECTION_CALL_REFRESH, earlier(until_ns, election->kill_at_ns));
}

static void leave(struct step *step)
{
    struct election *election = step->election;
    election->acting = false;
    election->refresh_at_ns = election->stop_at_ns = election->kill_at_ns = TIME_NEVER;
    election->deadline_ns = TIME_NEVER;
    (void)step_act(step, ELECTION_ACTION_CLEAR_DEADLINE);
    election->next_claim_ns = election->reclaim_ns;
    election->stand_back_ns = lets_go(election->reason) ? election->reclaim_ns : 0;
    if (!election->config.monitor_leader && election->reason == ELECTION_REASON_DENIED)
        election->next_claim_ns = TIME_NEVER;
    election->watching = false;
    election->child.restarts = 0;
    election->child.start_at_ns = election->config.has_follower_child ? step->now : TIME_NEVER;
    step_phase(step, ELECTION_FOLLOWING);
}

void stepping_settle(struct step *step)
{
    struct election *election = step->election;
    settle_tasks(step);
    settle_lost(step);
    if (election->child.running || election->lost != ELECTION_LOST_DONE) {
        refresh_on(step);
        return;
    }
    if (election->call.kind == ELECTION_CALL_ABDICATE)
        return;
    call_cancel(step);
    /* Never while anything of the term may run: the tree is gone, its tasks are cut, `lost` is over
     * (rule 4). */
    assert(!election->child.running && election->cut);
    if (election->ours && election->config.has_abdicate) {
        call_start(step, ELECTION_CALL_ABDICATE,
                   clock_add_ns(step->now, election->config.call_timeout_ns));
        return;
    }
    leave(step);
}

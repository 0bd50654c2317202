/* Following: when to claim, and what a claim's answer means. */
#include "base/clock.h"
#include "election/internal.h"

#define EXPIRY_WAIT_LEAST_NS NS_PER_MS /* a store that tells whole seconds says 0 for long */
#define EXPIRY_JITTER_LEAST_NS (NS_PER_MS / 5) /* clocks run differently */
#define EXPIRY_JITTER_NS (NS_PER_MS / 2) /* a crowd of followers does not claim in one instant */
#define RETRY_JITTER_PART 10             /* a tenth */
#define BACKOFF_MOST 8                   /* times `retry` */

static int64_t jittered(struct election *election, int64_t ns)
{
    return clock_add_ns(
        ns, (int64_t)random_below(&election->random, (uint64_t)(ns / RETRY_JITTER_PART) + 1));
}

/* A message may claim: before the first claim is due it waits. */
bool following_hears(const struct election *election)
{
    return election->messages > 0 && election->phase == ELECTION_FOLLOWING;
}

void following_start(struct step *step)
{
    struct election *election = step->election;
    election->since_ns = step->now;
    election->next_claim_ns = clock_add_ns(step->now, election->claim_delay_ns);
    election->child.waits = election->config->has_follower_child;
}

/* A claim was answered, and not by a grant. */
static void child_waits_no_more(struct step *step)
{
    struct election *election = step->election;
    if (election->child.waits)
        election->child.start_at_ns = step->now;
    election->child.waits = false;
}

/* Claims again when the lease that we were told of ends, not at a fixed poll (rule 7). */
static void claim_at_expiry(struct step *step, int64_t expires_ns)
{
    struct election *election = step->election;
    int64_t wait_ns = later(clock_add_ns(expires_ns, EXPIRY_JITTER_LEAST_NS), EXPIRY_WAIT_LEAST_NS);
    int64_t jitter = (int64_t)random_below(&election->random, (uint64_t)EXPIRY_JITTER_NS);
    election->next_claim_ns = clock_add_ns(clock_add_ns(step->now, wait_ns), jitter);
    election->watching = true;
}

/* What gives no answer is asked ever later; what answers, though with a failure, as often as
 * after a denial. @return the pause before the next claim. */
static int64_t pause_after_unknown(struct step *step)
{
    struct election *election = step->election;
    const struct election_event *event = step->event;
    int64_t retry_ns = election->config->retry_ns;
    if (event->unknown.answered) {
        election->retry_after_ns = 0;
        return event->unknown.retry_ns > 0 ? event->unknown.retry_ns : retry_ns;
    }
    election->retry_after_ns = election->retry_after_ns == 0
                                   ? retry_ns
                                   : earlier(election->retry_after_ns * 2, retry_ns * BACKOFF_MOST);
    return election->retry_after_ns;
}

void following_denied(struct step *step)
{
    struct election *election = step->election;
    const struct election_event *event = step->event;
    bool told = event->type == ELECTION_EVENT_DENIED; /* EVICTED says nothing about a holder */
    int64_t expires_ns = told ? event->denial.expires_ns : -1;
    bool forgot = told && lease_denied(step);
    child_waits_no_more(step);
    if (told && !forgot && !event->denial.nobody)
        election->led = true;
    election->retry_after_ns = 0;
    if (!forgot)
        step_emit(step, ELECTION_NOTICE_REJECTED);
    if (!election->config->monitor_leader && !forgot) {
        election->next_claim_ns = TIME_NEVER; /* until handle_info says so */
        return;
    }
    if (expires_ns >= 0) {
        claim_at_expiry(step, expires_ns);
        return;
    }
    int64_t retry_ns =
        told && event->denial.retry_ns > 0 ? event->denial.retry_ns : election->config->retry_ns;
    election->next_claim_ns = clock_add_ns(step->now, jittered(election, retry_ns));
    election->watching = false;
}

void following_unknown(struct step *step, enum election_call kind)
{
    struct election *election = step->election;
    int64_t pause_ns = pause_after_unknown(step);
    /* It may have been granted all the same: released before the next try (rule 5). */
    hold_perhaps(step);
    election->next_claim_ns = clock_add_ns(step->now, jittered(election, pause_ns));
    election->watching = false;
    /* Others hear of that release and claim, and we hear of theirs: without a pause for messages,
     * too, a store that answers each claim with an error would be asked without end. */
    if (kind == ELECTION_CALL_INFO)
        lease_sit_out(step, clock_add_ns(step->now, election->config->retry_ns));
    if (step->event->unknown.retry_ns > 0) /* the store itself has asked for that pause */
        lease_sit_out(step, clock_add_ns(step->now, step->event->unknown.retry_ns));
    child_waits_no_more(step);
}

/* The store gave out an epoch that was there before: it has lost its memory. @return whether to sit
 * it out. */
static bool forgot(struct step *step, const struct election_schedule *schedule)
{
    struct election *election = step->election;
    uint64_t epoch = step->event->grant.epoch;
    if (epoch == 0 || epoch > election->highest_epoch)
        return false;
    step_emit(step, ELECTION_NOTICE_AMNESIA);
    election->highest_epoch = epoch - 1; /* its new life is believed after the sit-out */
    hold_perhaps(step);
    int64_t wait = schedule->ttl_ns != TIME_NEVER ? schedule->ttl_ns : election->config->retry_ns;
    election->next_claim_ns = clock_add_ns(step->now, wait);
    lease_sit_out(step, election->next_claim_ns);
    return true;
}

/* It is given back. */
static void granted_late(struct step *step, enum election_call kind)
{
    step_emit(step, ELECTION_NOTICE_LATE);
    following_unknown(step, kind);
}

void following_granted(struct step *step, enum election_call kind)
{
    struct election *election = step->election;
    struct election_schedule schedule;
    const uint64_t epoch = step->event->grant.epoch;
    (void)timing_schedule(&election->config->timing, step->event->grant.ttl_ns,
                          step->event->grant.refresh_ns, &schedule, NULL);
    if (schedule.ttl_ns == 0) {
        granted_late(step, kind); /* too short for anything */
        return;
    }
    if (forgot(step, &schedule))
        return;
    if (!lease_take(step, &schedule)) {
        granted_late(step, kind); /* the answer came when it was nearly over */
        return;
    }
    /* Where the oracle gives none it is a count of our own terms, which no loss of memory resets.
     */
    election->epoch = epoch != 0 ? epoch : higher(election->epoch, election->highest_epoch) + 1;
    election->highest_epoch = election->epoch;
    election->retry_after_ns = 0;
    election->next_claim_ns = TIME_NEVER;
    election->terms++;
    if (kind == ELECTION_CALL_INFO && election->led)
        step_emit(step, ELECTION_NOTICE_LEADER_DOWN); /* the store told us of the release */
    else if (election->watching)
        step_emit(step, ELECTION_NOTICE_MONITOR_TIMEOUT); /* the lease ran out unseen */
    election->watching = election->led = false;
    leading_begin(step);
}

/* A claim under way, or a message that may claim, must not make a leader any more. */
void following_barred(struct step *step)
{
    enum election_call kind = step->election->call.kind;
    bool was_barred = step->election->bars != 0;
    if (!bars_set(step) || was_barred)
        return;
    if (kind == ELECTION_CALL_CLAIM || kind == ELECTION_CALL_INFO)
        call_cancel(step);
    /* Where the store keeps those who wait in a queue, it must not come to be this one's turn. */
    if (step->election->phase == ELECTION_FOLLOWING)
        hold_perhaps(step);
}

/* Where no claim is due any more, nobody here knows how the store stands now: it asks at once. */
void following_allowed(struct step *step)
{
    struct election *election = step->election;
    bars_clear(step);
    if (election->bars == 0 && election->phase == ELECTION_FOLLOWING &&
        election->next_claim_ns == TIME_NEVER)
        election->next_claim_ns = step->now;
}

/* It waits to be allowed, and its follower's child does not wait with it. */
static void settle_barred(struct step *step)
{
    struct election *election = step->election;
    if (election->phase == ELECTION_INIT && step->now >= election->next_claim_ns)
        step_phase(step, ELECTION_FOLLOWING);
    if (election->phase == ELECTION_FOLLOWING)
        child_waits_no_more(step);
    if (child_due(step))
        child_begin(step, ELECTION_ROLE_FOLLOWER);
}

static void settle_stop(struct step *step)
{
    struct election *election = step->election;
    election->next_claim_ns = TIME_NEVER;
    if (election->call.kind != ELECTION_CALL_ABDICATE)
        call_cancel(step);
    child_end(step);
    if (election->config->leaves && !election->left)
        hold_perhaps(step);
    if (election->call.kind == ELECTION_CALL_NONE && election->hold != ELECTION_HOLD_NO)
        call_release(step);
    if (election->call.kind != ELECTION_CALL_NONE || election->child.running)
        return;
    step_phase(step, ELECTION_FINISHED);
    (void)step_act(step, ELECTION_ACTION_FINISH);
}

void following_settle(struct step *step)
{
    struct election *election = step->election;
    int64_t until_ns = clock_add_ns(step->now, election->config->call_timeout_ns);
    if (election->stop) {
        settle_stop(step);
        return;
    }
    if (child_due(step))
        child_begin(step, ELECTION_ROLE_FOLLOWER);
    if (election->call.kind != ELECTION_CALL_NONE)
        return;
    if (election->hold != ELECTION_HOLD_NO) {
        call_release(step);
    } else if (election->bars != 0) {
        settle_barred(step);
    } else if (step->now < election->claim_not_before_ns) {
        return;
    } else if (step->now >= election->next_claim_ns) {
        election->next_claim_ns = TIME_NEVER;
        if (election->phase == ELECTION_INIT)
            step_phase(step, ELECTION_FOLLOWING);
        call_start(step, ELECTION_CALL_CLAIM, until_ns);
    } else if (following_hears(election)) {
        election->messages--;
        call_start(step, ELECTION_CALL_INFO, until_ns);
    }
}

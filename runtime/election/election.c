#include "election/election.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "election/internal.h"

/* --- what each event does in each phase
 * ------------------------------------------------------------------------ */

typedef void handler(struct step *step);

static void ignore(struct step *step)
{
    (void)step; /* nothing to do: settling looks at the time */
}

static void start(struct step *step)
{
    following_start(step);
}

static void start_owing(struct step *step)
{
    if (step->election->phase == ELECTION_INIT)
        stepping_owed(step);
}

static void message(struct step *step)
{
    step->election->messages++;
}

/* Results of calls. One that answers a call we gave up is stale, and whatever answers a release
 * ends it. @return the kind of call that has an answer now, or NONE. */
static enum election_call answered(struct step *step)
{
    struct election *election = step->election;
    enum election_call kind = election->call.kind;
    if (step->event->attempt != election->call.attempt)
        return ELECTION_CALL_NONE;
    call_ended(step);
    if (kind != ELECTION_CALL_ABDICATE)
        return kind;
    if (election->phase == ELECTION_STEPPING)
        step_emit(step, ELECTION_NOTICE_ABDICATED);
    return ELECTION_CALL_NONE;
}

static void follow_granted(struct step *step)
{
    bool stale = step->event->attempt != step->election->call.attempt;
    enum election_call kind = answered(step);
    if (kind != ELECTION_CALL_NONE)
        following_granted(step, kind);
    else if (stale)
        hold_perhaps(step); /* granted too late */
}

static void follow_denied(struct step *step)
{
    if (answered(step) != ELECTION_CALL_NONE)
        following_denied(step);
}

static void follow_unknown(struct step *step)
{
    enum election_call kind = answered(step);
    if (kind != ELECTION_CALL_NONE)
        following_unknown(step, kind);
}

static void released(struct step *step)
{
    (void)answered(step);
}

/* Only of a message: what else says nothing is unknown. */
static void follow_nothing(struct step *step)
{
    enum election_call kind = answered(step);
    if (kind == ELECTION_CALL_CLAIM)
        following_unknown(step, kind);
}

static void lead_granted(struct step *step)
{
    if (answered(step) != ELECTION_CALL_NONE)
        leading_granted(step);
}

static void lead_denied(struct step *step)
{
    if (answered(step) != ELECTION_CALL_NONE)
        leading_denied(step);
}

static void lead_evicted(struct step *step)
{
    if (answered(step) != ELECTION_CALL_NONE)
        leading_evicted(step);
}

static void lead_unknown(struct step *step)
{
    lease_unknown(step, answered(step));
}

/* Time may have passed that no clock here has counted, as in a virtual machine that was paused. So
 * the store is asked at once. A refresh under way may be from before, and its answer say too much.
 */
static void lead_clock_set(struct step *step)
{
    struct election *election = step->election;
    if (election->refresh_ns == TIME_NEVER)
        return; /* the oracle hears of a loss by itself */
    if (election->call.kind == ELECTION_CALL_REFRESH)
        call_cancel(step);
    election->refresh_at_ns = step->now;
}

static void lead_abdicate(struct step *step)
{
    stepping_begin(step, ELECTION_REASON_ABDICATED);
}

static void lead_barred(struct step *step)
{
    if (bars_set(step))
        stepping_begin(step, bars_reason(step));
}

static void lead_won_failed(struct step *step)
{
    stepping_begin(step, ELECTION_REASON_HANDLER_FAILED);
}

static void lead_stop(struct step *step)
{
    step->election->stop = true;
    stepping_begin(step, ELECTION_REASON_SHUTDOWN);
}

static void lead_child_gone(struct step *step)
{
    enum child_outcome outcome = child_ended(step);
    if (outcome == CHILD_FAILED)
        stepping_begin(step, ELECTION_REASON_CHILD_FAILED);
    else if (outcome == CHILD_KILLED)
        stepping_begin(step, ELECTION_REASON_CHILD_KILLED);
    else if (outcome == CHILD_ENDS)
        lead_stop(step);
}

static void step_granted(struct step *step)
{
    if (answered(step) != ELECTION_CALL_NONE)
        stepping_granted(step);
}

static void step_denied(struct step *step)
{
    if (answered(step) != ELECTION_CALL_NONE)
        stepping_denied(step);
}

static void step_unknown(struct step *step)
{
    lease_unknown(step, answered(step));
}

/* An oracle that says it each time. The lease is ours, so it is held on as long as that can be. */
static void step_evicted(struct step *step)
{
    struct election *election = step->election;
    if (answered(step) == ELECTION_CALL_REFRESH)
        election->refresh_at_ns = clock_add_ns(step->now, election->refresh_ns);
}

static void step_barred(struct step *step)
{
    (void)bars_set(step);
}

static void term_gone(struct step *step)
{
    struct election *election = step->election;
    if (election->stage == ELECTION_STAGE_CLOSING || election->stage == ELECTION_STAGE_LOST)
        election->term_gone = true;
}

static void lost_done(struct step *step)
{
    struct election *election = step->election;
    if (election->stage != ELECTION_STAGE_LOST)
        return;
    election->lost_over = true;
    election->lost_until_ns = TIME_NEVER;
}

static void stop(struct step *step)
{
    step->election->stop = true;
}

static void child_gone(struct step *step)
{
    if (child_ended(step) == CHILD_ENDS)
        stop(step);
}

/* INIT and FOLLOWING differ only in what they show; COOLING and LEADING in what runs. */
#define FOLLOW                                                                                     \
    {                                                                                              \
        [ELECTION_EVENT_START] = start, [ELECTION_EVENT_START_OWING] = start_owing,                \
        [ELECTION_EVENT_TIMER] = ignore, [ELECTION_EVENT_GRANTED] = follow_granted,                \
        [ELECTION_EVENT_DENIED] = follow_denied, [ELECTION_EVENT_EVICTED] = follow_denied,         \
        [ELECTION_EVENT_UNKNOWN] = follow_unknown, [ELECTION_EVENT_NOTHING] = follow_nothing,      \
        [ELECTION_EVENT_RELEASED] = released, [ELECTION_EVENT_MESSAGE] = message,                  \
        [ELECTION_EVENT_CHILD_STARTED] = ignore, [ELECTION_EVENT_CHILD_GONE] = child_gone,         \
        [ELECTION_EVENT_WON_FAILED] = ignore, [ELECTION_EVENT_TERM_GONE] = ignore,                 \
        [ELECTION_EVENT_LOST_DONE] = ignore, [ELECTION_EVENT_ABDICATE] = ignore,                   \
        [ELECTION_EVENT_BARRED] = following_barred, [ELECTION_EVENT_ALLOWED] = following_allowed,  \
        [ELECTION_EVENT_CLOCK_SET] = ignore, [ELECTION_EVENT_STOP] = stop,                         \
    }
#define LEAD                                                                                       \
    {                                                                                              \
        [ELECTION_EVENT_START] = ignore, [ELECTION_EVENT_START_OWING] = ignore,                    \
        [ELECTION_EVENT_TIMER] = ignore, [ELECTION_EVENT_GRANTED] = lead_granted,                  \
        [ELECTION_EVENT_DENIED] = lead_denied, [ELECTION_EVENT_EVICTED] = lead_evicted,            \
        [ELECTION_EVENT_UNKNOWN] = lead_unknown, [ELECTION_EVENT_NOTHING] = lead_unknown,          \
        [ELECTION_EVENT_RELEASED] = released, [ELECTION_EVENT_MESSAGE] = message,                  \
        [ELECTION_EVENT_CHILD_STARTED] = ignore, [ELECTION_EVENT_CHILD_GONE] = lead_child_gone,    \
        [ELECTION_EVENT_WON_FAILED] = lead_won_failed, [ELECTION_EVENT_TERM_GONE] = ignore,        \
        [ELECTION_EVENT_LOST_DONE] = ignore, [ELECTION_EVENT_ABDICATE] = lead_abdicate,            \
        [ELECTION_EVENT_BARRED] = lead_barred, [ELECTION_EVENT_ALLOWED] = bars_clear,              \
        [ELECTION_EVENT_CLOCK_SET] = lead_clock_set, [ELECTION_EVENT_STOP] = lead_stop,            \
    }
#define STEP                                                                                       \
    {                                                                                              \
        [ELECTION_EVENT_START] = ignore, [ELECTION_EVENT_START_OWING] = ignore,                    \
        [ELECTION_EVENT_TIMER] = ignore, [ELECTION_EVENT_GRANTED] = step_granted,                  \
        [ELECTION_EVENT_DENIED] = step_denied, [ELECTION_EVENT_EVICTED] = step_evicted,            \
        [ELECTION_EVENT_UNKNOWN] = step_unknown, [ELECTION_EVENT_NOTHING] = step_unknown,          \
        [ELECTION_EVENT_RELEASED] = released, [ELECTION_EVENT_MESSAGE] = message,                  \
        [ELECTION_EVENT_CHILD_STARTED] = ignore, [ELECTION_EVENT_CHILD_GONE] = child_gone,         \
        [ELECTION_EVENT_WON_FAILED] = ignore, [ELECTION_EVENT_TERM_GONE] = term_gone,              \
        [ELECTION_EVENT_LOST_DONE] = lost_done, [ELECTION_EVENT_ABDICATE] = ignore,                \
        [ELECTION_EVENT_BARRED] = step_barred, [ELECTION_EVENT_ALLOWED] = bars_clear,              \
        [ELECTION_EVENT_CLOCK_SET] = ignore, [ELECTION_EVENT_STOP] = stop,                         \
    }
#define OVER                                                                                       \
    {                                                                                              \
        [ELECTION_EVENT_START] = ignore, [ELECTION_EVENT_START_OWING] = ignore,                    \
        [ELECTION_EVENT_TIMER] = ignore, [ELECTION_EVENT_GRANTED] = ignore,                        \
        [ELECTION_EVENT_DENIED] = ignore, [ELECTION_EVENT_EVICTED] = ignore,                       \
        [ELECTION_EVENT_UNKNOWN] = ignore, [ELECTION_EVENT_NOTHING] = ignore,                      \
        [ELECTION_EVENT_RELEASED] = ignore, [ELECTION_EVENT_MESSAGE] = ignore,                     \
        [ELECTION_EVENT_CHILD_STARTED] = ignore, [ELECTION_EVENT_CHILD_GONE] = ignore,             \
        [ELECTION_EVENT_WON_FAILED] = ignore, [ELECTION_EVENT_TERM_GONE] = ignore,                 \
        [ELECTION_EVENT_LOST_DONE] = ignore, [ELECTION_EVENT_ABDICATE] = ignore,                   \
        [ELECTION_EVENT_BARRED] = ignore, [ELECTION_EVENT_ALLOWED] = ignore,                       \
        [ELECTION_EVENT_CLOCK_SET] = ignore, [ELECTION_EVENT_STOP] = ignore,                       \
    }

static handler *const table[ELECTION_PHASE_COUNT][ELECTION_EVENT_COUNT] = {
    [ELECTION_INIT] = FOLLOW,  [ELECTION_FOLLOWING] = FOLLOW, [ELECTION_COOLING] = LEAD,
    [ELECTION_LEADING] = LEAD, [ELECTION_STEPPING] = STEP,    [ELECTION_FINISHED] = OVER,
};

/* --- what is due
 * -------------------------------------------------------------------------------------------- */

/* A call that took too long is given up: nothing that it says later counts. */
static void settle_call(struct step *step)
{
    struct election *election = step->election;
    enum election_call kind = election->call.kind;
    if (kind == ELECTION_CALL_NONE || step->now < election->call.until_ns)
        return;
    call_cancel(step);
    if (kind == ELECTION_CALL_ABDICATE)
        return;
    if (election->phase == ELECTION_FOLLOWING)
        following_unknown(step, kind);
    else
        lease_unknown(step, kind);
}

static void settle(struct step *step)
{
    enum election_phase before;
    settle_call(step);
    do {
        before = step->election->phase;
        switch (before) {
        case ELECTION_INIT:
        case ELECTION_FOLLOWING:
            following_settle(step);
            break;
        case ELECTION_COOLING:
        case ELECTION_LEADING:
            leading_settle(step);
            break;
        case ELECTION_STEPPING:
            stepping_settle(step);
            break;
        default:
            break;
        }
    } while (step->election->phase != before);
}

static int64_t next_following(const struct election *election)
{
    if (election->bars != 0 && election->phase == ELECTION_FOLLOWING)
        return TIME_NEVER;
    int64_t next =
        following_hears(election) ? election->claim_not_before_ns : election->next_claim_ns;
    return later(next, election->claim_not_before_ns);
}

static int64_t next_instant(const struct election *election)
{
    bool idle = election->call.kind == ELECTION_CALL_NONE;
    int64_t next = idle ? TIME_NEVER : election->call.until_ns;
    int64_t start_ns = election->child.running ? TIME_NEVER : election->child.start_at_ns;
    switch (election->phase) {
    case ELECTION_INIT:
    case ELECTION_FOLLOWING:
        if (idle && !election->stop)
            next = earlier(next, next_following(election));
        return earlier(next, start_ns);
    case ELECTION_COOLING:
        next = earlier(next, election->cool_until_ns);
        break;
    case ELECTION_LEADING:
        next = earlier(next, start_ns);
        break;
    case ELECTION_STEPPING:
        if (election->stage == ELECTION_STAGE_CHILD || election->stage == ELECTION_STAGE_CLOSING)
            next = earlier(next, election->kill_at_ns);
        next = earlier(next, election->lost_until_ns);
        return idle ? earlier(next, election->refresh_at_ns) : next; /* same (always): not set */
    default:
        return TIME_NEVER;
    }
    if (idle)
        next = earlier(next, election->refresh_at_ns);
    return earlier(next, election->stop_at_ns);
}

int election_init(struct election *election, const struct election_config *config,
                  uint32_t *restarted, struct crown_error *err)
{
    struct election_schedule schedule;
    if (config->restart_max > ELECTION_MAX_RESTARTS)
        return error_set(err, ERROR_USAGE, "restart.max: at most %d", ELECTION_MAX_RESTARTS);
    /* What can be known before the first grant: a lease given in the options leaves room for
     * stopping. */
    if (config->timing.lease_ns > 0 &&
        timing_schedule(&config->timing, 0, config->timing.lease_ns / 3, &schedule, err) < 0)
        return -1;
    memset(election, 0, sizeof(*election));
    election->config = config;
    election->claim_delay_ns = config->claim_delay_ns;
    election->phase = ELECTION_INIT;
    election->armed_ns = TIME_NEVER;
    election->next_claim_ns = TIME_NEVER;
    election->child.start_at_ns = TIME_NEVER;
    election->child.restarted = restarted;
    election->refresh_at_ns = election->stop_at_ns = election->kill_at_ns = TIME_NEVER;
    election->deadline_ns = election->lost_until_ns = TIME_NEVER;
    random_seed(&election->random, config->seed);
    return 0;
}

void election_share(struct election *election, const struct election_config *same)
{
    election->config = same;
}

void election_step(struct election *election, const struct election_event *event,
                   struct election_actions *out)
{
    struct step step = {.election = election, .event = event, .now = event->at_ns, .out = out};
    assert(event->type < ELECTION_EVENT_COUNT);
    out->count = 0;
    if (event->type == ELECTION_EVENT_TIMER)
        election->armed_ns = TIME_NEVER;
    table[election->phase][event->type](&step);
    settle(&step);
    int64_t next = next_instant(election);
    if (next != election->armed_ns && election->phase != ELECTION_FINISHED)
        step_act(&step, ELECTION_ACTION_ARM_TIMER)->at_ns = next;
    election->armed_ns = next;
}

struct election_view election_look(const struct election *election)
{
    return (struct election_view){
        .phase = election->phase,
        .acting = election->phase == ELECTION_LEADING && election->stage == ELECTION_STAGE_ACTING,
        .epoch = election->epoch,
        .terms = election->terms,
        .ending = election->stop,
        .bars = election->bars,
        .stop_at_ns = election->stop_at_ns,
        .kill_at_ns = election->kill_at_ns,
        .deadline_ns = election->deadline_ns,
        .next_claim_ns = election->bars != 0
                             ? TIME_NEVER
                             : later(election->next_claim_ns, election->claim_not_before_ns),
        .acts_at_ns = election->phase == ELECTION_COOLING ? election->cool_until_ns : TIME_NEVER,
        .since_ns = election->since_ns,
        .last_reason = election->last_reason,
    };
}

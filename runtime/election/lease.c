/* The lease: what a grant gives and for how long, and what a denial says of the store. */
#include "base/clock.h"
#include "election/internal.h"

#define UNCERTAIN_FIRST_NS (100 * NS_PER_MS)
#define GRID_MOST_NS (250 * NS_PER_MS)
#define GRID_PART 40 /* of the refresh delay */

/* Never later than asked, and a little earlier where that lets the process wake once for many
 * elections. */
static int64_t refresh_at(int64_t sent_ns, int64_t refresh_ns)
{
    int64_t grid = earlier(refresh_ns / GRID_PART, GRID_MOST_NS);
    int64_t at_ns = clock_add_ns(sent_ns, refresh_ns);
    return refresh_ns == TIME_NEVER || grid == 0 ? at_ns : at_ns - at_ns % grid;
}

bool lease_take(struct step *step, const struct election_schedule *schedule)
{
    struct election *election = step->election;
    /* From when the request was sent: the store cannot have begun to count before (rule 1). The
     * oracle may have sent it before the call. */
    int64_t sent_ns = election->call.sent_ns - step->event->grant.past_ns;
    int64_t stop_at_ns = clock_add_ns(sent_ns, schedule->stop_at_ns);
    if (step->now >= stop_at_ns)
        return false;
    election->refresh_ns = schedule->refresh_ns;
    election->stop_timeout_ns = schedule->stop_timeout_ns;
    election->refresh_at_ns = refresh_at(election->call.sent_ns, schedule->refresh_ns);
    election->stop_at_ns = stop_at_ns;
    election->kill_at_ns = clock_add_ns(sent_ns, schedule->kill_at_ns);
    election->deadline_ns = clock_add_ns(sent_ns, schedule->deadline_ns);
    election->uncertain_ns = 0;
    return true;
}

void lease_tell(struct step *step)
{
    const struct election *election = step->election;
    struct election_action *action = step_act(step, ELECTION_ACTION_SET_DEADLINE);
    action->stop_at_ns = election->stop_at_ns;
    action->kill_at_ns = election->kill_at_ns;
    action->deadline_ns = election->deadline_ns;
}

void lease_unknown(struct step *step, enum election_call kind)
{
    struct election *election = step->election;
    if (kind != ELECTION_CALL_REFRESH)
        return;
    int64_t most = election->refresh_ns;
    election->uncertain_ns = election->uncertain_ns == 0
                                 ? earlier(UNCERTAIN_FIRST_NS, most)
                                 : earlier(election->uncertain_ns * 2, most);
    int64_t left_ns = election->stop_at_ns - step->now;
    int64_t asked_ns = earlier(step->event->unknown.retry_ns, left_ns / 2);
    election->refresh_at_ns = clock_add_ns(step->now, later(election->uncertain_ns, asked_ns));
    step_emit(step, ELECTION_NOTICE_UNCERTAIN);
}

bool lease_refreshed(struct step *step)
{
    struct election *election = step->election;
    struct election_schedule schedule;
    (void)timing_schedule(&election->config->timing, step->event->grant.ttl_ns,
                          step->event->grant.refresh_ns, &schedule, NULL);
    if (!lease_take(step, &schedule)) {
        step_emit(step, ELECTION_NOTICE_LATE);
        lease_unknown(step, ELECTION_CALL_REFRESH);
        return false;
    }
    lease_tell(step);
    return true;
}

void lease_sit_out(struct step *step, int64_t until_ns)
{
    struct election *election = step->election;
    election->claim_not_before_ns = later(election->claim_not_before_ns, until_ns);
}

bool lease_denied(struct step *step)
{
    struct election *election = step->election;
    const struct election_event *event = step->event;
    if (!event->denial.amnesia) {
        election->highest_epoch = higher(election->highest_epoch, event->denial.epoch);
        return false;
    }
    election->highest_epoch = event->denial.epoch;
    step_emit(step, ELECTION_NOTICE_AMNESIA);
    if (!event->denial.hears)
        lease_sit_out(step, clock_add_ns(step->now, event->denial.expires_ns)); /* -1: it is over */
    return true;
}

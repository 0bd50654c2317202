/* The lease: what a grant gives and for how long, and what a denial says of the store. */
#include "base/clock.h"
#include "election/internal.h"

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

bool lease_take(struct step *step, const struct election_schedule *schedule, int64_t sent_ns)
{
    struct election *election = step->election;
    /* From when the request was sent: the store cannot have begun to count before (rule 1). */
    int64_t stop_at_ns = clock_add_ns(sent_ns, schedule->stop_at_ns);
    if (step->now >= stop_at_ns)
        return false;
    election->schedule = *schedule;
    election->refresh_at_ns = refresh_at(sent_ns, schedule->refresh_ns);
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

void lease_sit_out(struct step *step, int64_t until_ns)
{
    struct election *election = step->election;
    election->claim_not_before_ns = later(election->claim_not_before_ns, until_ns);
}

bool lease_denied(struct step *step)
{
    struct election *election = step->election;
    const struct election_event *event = step->event;
    if (event->denial.epoch > election->highest_epoch)
        election->highest_epoch = event->denial.epoch;
    if (!event->denial.amnesia)
        return false;
    step_emit(step, ELECTION_NOTICE_AMNESIA);
    election->amnesia_known = true;
    if (event->denial.expires_ns >= 0)
        lease_sit_out(step, clock_add_ns(step->now, event->denial.expires_ns));
    return true;
}

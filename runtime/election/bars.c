/* What speaks against leading, beside the store: set and cleared by the candidate's own rules. */
#include "election/internal.h"

static unsigned bit_of(const struct step *step)
{
    return 1u << step->event->bar;
}

static void tell(struct step *step, enum election_notice notice)
{
    struct election_action *action = step_act(step, ELECTION_ACTION_EMIT);
    action->notice = notice;
    action->bar = step->event->bar;
}

bool bars_set(struct step *step)
{
    struct election *election = step->election;
    if ((election->bars & bit_of(step)) != 0)
        return false;
    election->bars = (uint8_t)(election->bars | bit_of(step));
    tell(step, ELECTION_NOTICE_BARRED);
    return true;
}

void bars_clear(struct step *step)
{
    struct election *election = step->election;
    if ((election->bars & bit_of(step)) == 0)
        return;
    election->bars = (uint8_t)(election->bars & ~bit_of(step));
    if (election->bars == 0)
        tell(step, ELECTION_NOTICE_ALLOWED);
}

enum election_reason bars_reason(const struct step *step)
{
    switch (step->event->bar) {
    case ELECTION_BAR_UNHEALTHY:
        return ELECTION_REASON_UNHEALTHY;
    case ELECTION_BAR_WINDOW:
        return ELECTION_REASON_WINDOW;
    case ELECTION_BAR_PAUSED:
        return ELECTION_REASON_PAUSED;
    case ELECTION_BAR_HANDOVER:
        return ELECTION_REASON_HANDOVER;
    default:
        return ELECTION_REASON_ABDICATED; /* `never` is set before the first claim */
    }
}

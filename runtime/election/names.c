/* The words that logs, tests and metrics print, from the same lists as the enums. */
#include "election/election.h"

#define NAME(id, text) text,

const char *election_phase_name(enum election_phase phase)
{
    static const char *const names[] = {ELECTION_PHASES(NAME)};
    return phase < ELECTION_PHASE_COUNT ? names[phase] : "unknown";
}

const char *election_event_name(enum election_event_type type)
{
    static const char *const names[] = {ELECTION_EVENTS(NAME)};
    return type < ELECTION_EVENT_COUNT ? names[type] : "unknown";
}

const char *election_action_name(enum election_action_type type)
{
    static const char *const names[] = {ELECTION_ACTIONS(NAME)};
    return type < ELECTION_ACTION_COUNT ? names[type] : "unknown";
}

const char *election_reason_name(enum election_reason reason)
{
    static const char *const names[] = {ELECTION_REASONS(NAME)};
    return reason < ELECTION_REASON_COUNT ? names[reason] : "unknown";
}

const char *election_bar_name(enum election_bar bar)
{
    static const char *const names[] = {ELECTION_BARS(NAME)};
    return bar < ELECTION_BAR_COUNT ? names[bar] : "unknown";
}

const char *election_notice_name(enum election_notice notice)
{
    static const char *const names[] = {ELECTION_NOTICES(NAME)};
    return notice < ELECTION_NOTICE_COUNT ? names[notice] : "unknown";
}

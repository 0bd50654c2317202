/**
 * What the files of the core say to each other. Nobody else includes this.
 */
#ifndef CROWN_ELECTION_INTERNAL_H
#define CROWN_ELECTION_INTERNAL_H

#include "election/state.h"

/** One step under way: the event, and the list that it fills. */
struct step {
    struct election *election;
    const struct election_event *event;
    int64_t now;
    struct election_actions *out;
};

/* election.c */
struct election_action *step_act(struct step *step, enum election_action_type type);
void step_emit(struct step *step, enum election_notice notice);
void step_phase(struct step *step, enum election_phase phase);

/* call.c: one oracle call at a time */
void call_start(struct step *step, enum election_call kind, int64_t until_ns);
void call_cancel(struct step *step);
void call_ended(struct step *step);
/** @return when a call in a term must be over, so that another can still be tried. */
int64_t call_term_until(const struct step *step);

/* following.c */
void following_start(struct step *step);
void following_granted(struct step *step, enum election_call kind);
void following_denied(struct step *step);
void following_unknown(struct step *step, enum election_call kind);
void following_settle(struct step *step);

/* leading.c */
void leading_begin(struct step *step);
void leading_granted(struct step *step);
void leading_denied(struct step *step);
void leading_evicted(struct step *step);
void leading_unknown(struct step *step, enum election_call kind);
void leading_settle(struct step *step);
/** Takes over a grant's instants. @return false where it leaves no time to act. */
bool lease_take(struct step *step, const struct election_schedule *schedule, int64_t sent_ns);
void lease_tell(struct step *step);

/* stepping.c */
void stepping_begin(struct step *step, enum election_reason reason, bool ours);
void stepping_granted(struct step *step);
void stepping_settle(struct step *step);

/* children.c */
void child_ended(struct step *step);
void child_begin(struct step *step, enum election_role role);
void child_end(struct step *step);
bool child_due(const struct step *step);

static inline int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif

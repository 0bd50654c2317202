/**
 * What the files of the core say to each other, from the bottom up: a file calls only what stands
 * above it here. Nobody else includes this.
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

static inline uint64_t higher(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* step.c: what a step writes down */
struct election_action *step_act(struct step *step, enum election_action_type type);
void step_emit(struct step *step, enum election_notice notice);
void step_phase(struct step *step, enum election_phase phase);

/* stage.c: how far a term has come, and whether the store may count us as its holder */
void stage_enter(struct step *step, enum election_stage stage);
/** A claim may have been granted without our knowing. */
void hold_perhaps(struct step *step);

/* call.c: one oracle call at a time */
void call_start(struct step *step, enum election_call kind, int64_t until_ns);
void call_cancel(struct step *step);
void call_ended(struct step *step);
/** Gives back what the store may count as ours: the only one who does. The lease is not ours any
 * more when this call has ended, however it ends. */
void call_release(struct step *step);
/** @return when a call in a term must be over, so that another can still be tried. */
int64_t call_term_until(const struct step *step);

/* lease.c: what a grant or a denial says about instants and epochs */
/** Takes over the instants of the grant that has come. @return false where it leaves no time to
 * act. */
bool lease_take(struct step *step, const struct election_schedule *schedule);
void lease_tell(struct step *step);
/** Takes over a refresh's grant and tells it. @return false where it gave no time: tried again. */
bool lease_refreshed(struct step *step);
/** What became of the lease is not known: where it was a refresh it is tried again soon. */
void lease_unknown(struct step *step, enum election_call kind);
/** Notes what a denial says of the store. @return whether the store forgot, and is sat out. */
bool lease_denied(struct step *step);
/** Neither a claim nor a message before this instant; nothing shortens it. */
void lease_sit_out(struct step *step, int64_t until_ns);

/* restarts.c: the child, and what its end means */
enum child_outcome {
    CHILD_GOES_ON, /* the term, or the following, goes on */
    CHILD_FAILED,  /* the term is to end */
    CHILD_KILLED,  /* so is it, for nothing that the child did */
    CHILD_ENDS,    /* the election is to end */
};
enum child_outcome child_ended(struct step *step);
void child_begin(struct step *step, enum election_role role);
void child_end(struct step *step);
bool child_due(const struct step *step);

/* bars.c: what speaks against leading, beside the store */
/** Takes over BARRED. @return whether it is new. */
bool bars_set(struct step *step);
/** Takes over ALLOWED. */
void bars_clear(struct step *step);
/** @return why a term ends that the event's bar ends. */
enum election_reason bars_reason(const struct step *step);

/* stepping.c */
void stepping_begin(struct step *step, enum election_reason reason);
/** Begins with the `lost` of a term that the runtime before has died in. */
void stepping_owed(struct step *step);
void stepping_granted(struct step *step);
void stepping_denied(struct step *step);
void stepping_settle(struct step *step);

/* leading.c */
void leading_begin(struct step *step);
void leading_granted(struct step *step);
void leading_denied(struct step *step);
void leading_evicted(struct step *step);
void leading_settle(struct step *step);

/* following.c */
void following_start(struct step *step);
void following_granted(struct step *step, enum election_call kind);
void following_denied(struct step *step);
void following_unknown(struct step *step, enum election_call kind);
void following_barred(struct step *step);
void following_allowed(struct step *step);
void following_settle(struct step *step);
bool following_hears(const struct election *election);

static inline int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif

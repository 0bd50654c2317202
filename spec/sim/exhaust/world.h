/**
 * What the files of the small world share: its units, what is asked of this run, and one
 * candidate's half of the world.
 */
#ifndef CROWN_SIM_EXHAUST_WORLD_H
#define CROWN_SIM_EXHAUST_WORLD_H

#include "base/clock.h"
#include "model.h"

#define TTL_NS NS_PER_S
#define STEP_NS (TTL_NS / 10)
#define NOW_NS (1000 * NS_PER_S)
#define EPOCH_BASE 1000

struct exhaust_run {
    struct model_bounds bounds;
    int64_t unprinted_ns; /* time since the last event that was written */
};
extern struct exhaust_run run;

/** Brings a state to the one form of all that are the same. */
void canonical_form(struct model *model);
/** Moves every instant towards the past. */
void canonical_shift(struct model *model, int64_t by_ns);

/** @return whether anything of a term is left. */
bool half_term_exists(const struct half *half);
/** @return whether something of a term still does what only a leader may. */
bool half_acts(const struct half *half);
/** @return whether the core leads. */
bool half_leads(const struct half *half);
/** Sends SIGKILL. */
void half_kill(enum process *process);
/** The runtime dies, and the keepers kill what it ran. */
void half_crash(struct half *half);
/** Tells the core of the term's end when nothing of it is left. */
void half_settle_ends(struct half *half);
/** The handler of a loss returns. */
void half_lost_returns(struct half *half);
/**
 * Feeds the core an event and carries out what it decides.
 * @param out as for model_move.
 * @return the promise that is broken, or NULL.
 */
const char *half_feed(struct model *model, unsigned who, struct election_event event, FILE *out);
/** The same for an event that is only its type. */
const char *half_feed_type(struct model *model, unsigned who, enum election_event_type type,
                           FILE *out);

#endif

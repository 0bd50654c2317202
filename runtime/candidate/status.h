/**
 * What a candidate shows of itself.
 */
#ifndef CROWN_CANDIDATE_STATUS_H
#define CROWN_CANDIDATE_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "election/election.h"

struct candidate;

struct candidate_status {
    struct election_view view;
    const char *leader;    /* NULL: nobody known; valid until the next event */
    uint64_t leader_epoch; /* 0: not known */
    int64_t
        expires_at_ns; /* of the own term's deadline or the holder's lease; TIME_NEVER: not known */
    pid_t child_pid;   /* 0: none */
    bool child_is_leader;
    bool child_lives_on; /* in signal mode, after its term */
    bool child_unfenced; /* and works on: nothing ends it, and no signal tells it to stop */
    bool child_ended;    /* the leader's command, at least once: with this status of waitpid(2) */
    int child_status;
    bool doubted;             /* the store may have forgotten who leads, and is sat out */
    const char *failure;      /* why the store gives no answer; NULL: it does, or was not asked */
    bool answers;             /* and yet the store answers: `failure` is its answer */
    int64_t failing_since_ns; /* TIME_NEVER: it does not fail */
    int64_t answered_ns;      /* TIME_NEVER: never */
};

void candidate_status(const struct candidate *candidate, struct candidate_status *status);

/** @return whether the election has ended, and with it all that it had started. */
bool candidate_finished(const struct candidate *candidate);
const char *candidate_name(const struct candidate *candidate);
/** The node as which it takes part. */
const char *candidate_node(const struct candidate *candidate);
/** @return whether it takes part as that node of its own; as the runtime's where that is NULL. */
bool candidate_is_of(const struct candidate *candidate, const char *node);
const char *candidate_oracle(const struct candidate *candidate);
/** @return which store it is, without its secrets; NULL: not known. */
const char *candidate_store(const struct candidate *candidate);

/** @return the word users see: init, following, cooling, leading or finishing; stepping is an inner
 * matter. */
const char *candidate_phase_name(enum election_phase phase);

/** @return how many seconds the term `epoch` may act on; 0 when it is over; infinity without a
 * deadline. */
double candidate_term_remaining(const struct candidate *candidate, uint64_t epoch);

/** @return when the term that is not over may not act any more; TIME_NEVER without one. */
int64_t candidate_deadline(const struct candidate *candidate);

#endif

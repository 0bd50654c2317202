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
};

void candidate_status(const struct candidate *candidate, struct candidate_status *status);

/** @return whether the election has ended, and with it all that it had started. */
bool candidate_finished(const struct candidate *candidate);
const char *candidate_name(const struct candidate *candidate);
const char *candidate_oracle(const struct candidate *candidate);

/** @return the word users see: init, following, leading or finishing; cooling and stepping are
 * inner matters. */
const char *candidate_phase_name(enum election_phase phase);

/** @return how many seconds the term `epoch` may act on; 0 when it is over; infinity without a
 * deadline. */
double candidate_term_remaining(const struct candidate *candidate, uint64_t epoch);

#endif

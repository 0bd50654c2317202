/**
 * The command that a candidate runs: the leader's or the follower's, one at a time.
 */
#ifndef CROWN_CANDIDATE_WORKLOAD_H
#define CROWN_CANDIDATE_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "election/election.h"

struct candidate;

/** It is going to claim: should it win, its command starts the sooner. */
void workload_expect(const struct candidate *candidate);

/** The core's START_CHILD. CHILD_GONE follows for each, also where it could not be started. */
void workload_start(struct candidate *candidate, const struct election_action *action);

/** The core's STOP_CHILD: stop signal now, SIGKILL at `kill_at_ns`; in signal mode it may only step
 * aside. */
void workload_stop(struct candidate *candidate, int64_t kill_at_ns);

/** Sends a signal to the command alone. @return false when none runs. */
bool workload_signal(struct candidate *candidate, int signal);

/** The whole runtime goes down, and its keepers kill. */
void workload_let_go(struct candidate *candidate);

#endif

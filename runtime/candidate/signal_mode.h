/**
 * Signal mode: a command that lives from term to term, told by SIGUSR1 that it leads and by SIGUSR2
 * that it does not any more. To the core its child ends with the term; here it only steps aside.
 */
#ifndef CROWN_CANDIDATE_SIGNAL_MODE_H
#define CROWN_CANDIDATE_SIGNAL_MODE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct candidate;
struct workload;

/** Sends a signal as soon as the command has a handler for it, so that it never kills one that has
 * none. A later signal takes the place of one that still waits. */
void signal_mode_tell(struct workload *workload, int signal);

/** Says in the log which signal the command was sent. */
void signal_mode_sent(const struct workload *workload, int signal);

/** A new term: the command that lives on from an earlier one, if there is one, becomes this
 * term's. */
bool signal_mode_take_up(struct candidate *candidate);

/**
 * A term's end.
 * @return false when the command is to be stopped instead: not in signal mode, or the election
 * ends.
 */
bool signal_mode_leave(struct candidate *candidate, int64_t kill_at_ns);

#endif

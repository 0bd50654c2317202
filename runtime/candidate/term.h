/**
 * A term: all that the leader runs here, and until when.
 */
#ifndef CROWN_CANDIDATE_TERM_H
#define CROWN_CANDIDATE_TERM_H

#include "child/exec.h"
#include "election/election.h"
#include "lua/task.h"
#include "process/child_spec.h"

struct candidate;

/** The core's RUN_WON. */
void term_begin(struct candidate *candidate, uint64_t epoch);
/** The core's SET_DEADLINE. */
void term_set_instants(struct candidate *candidate, const struct election_action *action);
/** The core's CLEAR_DEADLINE. */
void term_clear_instants(struct candidate *candidate);
/** What a term needs before the first. */
void term_prepare(struct candidate *candidate);
/** The core's CLOSE_TERM: TERM_GONE is fed when nothing of the term is left. */
void term_close(struct candidate *candidate);
/** The candidate is freed. */
void term_disown(struct candidate *candidate);

/**
 * For a command that a task of the term `scope` runs: it gets the term's instants, and follows them
 * as they move.
 * @param scope of the running task.
 * @return where to link the execution, or NULL when the scope is no term's: then nothing is
 * changed.
 */
struct exec_group *term_adopt_exec(const struct task_scope *scope, struct child_spec *spec);

#endif

/**
 * Scenarios: what happens to a candidate, or to two, a line each, and below it, indented, the exact
 * decisions that it leads to. A file is run by saying all decisions anew; it holds when nothing in
 * it changes.
 *
 *   # A comment.
 *   with child=yes call_timeout=2s     first of all; what is not said is as in scenario_config
 *   start                              an event; answers are to the call in flight
 *       call_claim #1 until=+5s        a decision, instants relative to now
 *   +100ms granted ttl=10s refresh=3s epoch=1
 *   timer                              the clock goes to the instant that was armed
 *   b: start                           another candidate, on the same clock
 */
#ifndef CROWN_SPEC_C_ELECTION_SCENARIO_H
#define CROWN_SPEC_C_ELECTION_SCENARIO_H

#include <stdio.h>

#include "election/state.h"

/** Runs the scenario `in` and writes it with all its decisions to `out`. @return 0, or the number
 * of the first line that is none. */
int scenario_run(FILE *in, FILE *out);

/** One event as a scenario's line, without its end. @param after_ns since the event before it. */
void scenario_print_event(FILE *out, const struct election_event *event, int64_t after_ns);
/** One decision as a scenario's line. */
void scenario_print_action(FILE *out, const struct election_action *action, int64_t now_ns);
/** A configuration as a scenario's first line: what differs from `usual`. */
void scenario_print_config(FILE *out, const struct election_config *config,
                           const struct election_config *usual);
/** A configuration as most scenarios have it. */
struct election_config scenario_config(void);

#endif

/**
 * One election in this process, as the rest of the program sees it. Inside, feed.c steps the pure
 * core and candidate.c carries out its actions: they become oracle calls and handlers (tasks),
 * children (keepers), timers and telemetry; results, messages, deaths and instants become events.
 */
#ifndef CROWN_CANDIDATE_CANDIDATE_H
#define CROWN_CANDIDATE_CANDIDATE_H

#include <lua.h>
#include <stdbool.h>

#include "base/error.h"
#include "candidate/candidates.h"
#include "candidate/env.h"
#include "candidate/status.h"
#include "child/options.h"
#include "child/tail.h"
#include "election/election.h"
#include "telemetry/telemetry.h"

/** What the Lua side has validated. Strings are copied; the child options change owner. */
struct candidate_config {
    const char *name;
    const char *node;   /* NULL: the runtime's. With its own, an election may have several here */
    const char *oracle; /* the word events use: "file", "postgres_lease" */
    const char *store;  /* which one, without its secrets: "redis://db:6379"; NULL: not known */
    struct election_config election;
    bool has_won, has_lost, has_campaign, has_leader;
    struct child_options *child; /* NULL: none */
    struct child_options *follower_child;
};

/**
 * Makes a candidate of the object on top of L (popped, anchored until the election finishes). Its
 * method `perform(kind, …)` is called in tasks; lua/crown/elect.lua says what it answers.
 * @param env outlives every candidate.
 * @return NULL with `err` where the name is taken or the timing could overlap; then the child
 * options are freed.
 */
struct candidate *candidate_new(struct candidate_env *env, lua_State *L,
                                const struct candidate_config *config, struct crown_error *err);

/** Ends a candidate without a word to the store: the runtime is going down, and its keepers kill
 * the children. */
void candidate_close(struct candidate *candidate);

/** Closes and frees. Called when Lua has let go of the election's handle. */
void candidate_free(struct candidate *candidate);

void candidate_start(struct candidate *candidate);
/** Its `won` is about to run: from now on there is a `lost` to come, if need be from the next
 * runtime. */
void candidate_won(struct candidate *candidate);
/** Steps down, and lets others try. */
void candidate_abdicate(struct candidate *candidate);
/** The wall clock was set. @see ELECTION_EVENT_CLOCK_SET */
void candidate_clock_set(struct candidate *candidate);
/** Ends the election, in order. */
void candidate_stop(struct candidate *candidate);

/** Queues the value on top of L (popped) for the oracle's handle_info. @return false when the queue
 * is full. */
bool candidate_send(struct candidate *candidate, lua_State *L);

/** Says whether nothing speaks against its term, so that a renewal of a session may refresh it
 * (renewals.h); else its oracle is asked. */
void candidate_stand(struct candidate *candidate, bool stands);

/** @return the end of what its leader's command has written; NULL: it has no command. */
const struct tail *candidate_output(const struct candidate *candidate);

/** Sends a signal to the child alone. @return false when none runs. */
bool candidate_signal_child(struct candidate *candidate, int signal);

/** Pushes the Lua object; not after its end. */
void candidate_push(const struct candidate *candidate, lua_State *L);

/** What events about this election name. */
const struct telemetry_source *candidate_source(const struct candidate *candidate);

#endif

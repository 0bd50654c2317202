/**
 * Where the pure core meets the world: THE ONLY place that carries out an election's actions and
 * feeds it events. Actions become oracle calls and handlers (tasks), children (keepers), timers and
 * telemetry; results, messages, deaths and instants become events.
 */
#ifndef CROWN_CANDIDATE_CANDIDATE_H
#define CROWN_CANDIDATE_CANDIDATE_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "child/options.h"
#include "election/election.h"
#include "lua/task.h"

struct host;
struct candidate;

/** What the Lua side has validated. Strings are copied; the child options change owner. */
struct candidate_config {
    const char *name;
    const char *oracle; /* the word events use: "file", "postgres_lease" */
    struct election_config election;
    bool has_won, has_lost, has_campaign;
    struct child_options *child; /* NULL: none */
    struct child_options *follower_child;
};

struct candidate_status {
    struct election_view view;
    const char *leader;    /* NULL: nobody known; valid until the next event */
    uint64_t leader_epoch; /* 0: not known */
    int64_t
        expires_at_ns; /* of the own term's deadline or the holder's lease; TIME_NEVER: not known */
    pid_t child_pid;   /* 0: none */
    bool child_is_leader;
};

/**
 * Makes a candidate of the object on top of L (popped, anchored until the election finishes). Its
 * method `perform(kind, …)` is called in tasks; lua/crown/elect.lua says what it answers.
 * @return NULL with `err` where the name is taken or the timing could overlap; then the child
 * options are freed.
 */
struct candidate *candidate_new(struct host *host, lua_State *L,
                                const struct candidate_config *config, struct crown_error *err);

/** Ends a candidate without a word to the store: the host is going down, and its keepers kill the
 * children. */
void candidate_close(struct candidate *candidate);

/** Closes and frees. Called when Lua has let go of the election's handle. */
void candidate_free(struct candidate *candidate);

void candidate_start(struct candidate *candidate);
void candidate_abdicate(struct candidate *candidate);
void candidate_stop(struct candidate *candidate);
bool candidate_finished(const struct candidate *candidate);
const char *candidate_name(const struct candidate *candidate);
const char *candidate_oracle(const struct candidate *candidate);

/**
 * For a command that a task of the term `scope` runs: it gets the term's instants, and follows them
 * as they move.
 * @param scope of the running task.
 * @return where to link the execution, or NULL when the scope is no term's: then nothing is
 * changed.
 */
struct list *candidate_adopt_exec(const struct task_scope *scope, struct child_spec *spec);

/** Queues the value on top of L (popped) for the oracle's handle_info. @return false when the queue
 * is full. */
bool candidate_send(struct candidate *candidate, lua_State *L);

/** Sends a signal to the child alone. @return false when none runs. */
bool candidate_signal_child(struct candidate *candidate, int signal);

/** @return the word users see: init, following, leading or finishing; cooling and stepping are
 * inner matters. */
const char *candidate_phase_name(enum election_phase phase);

void candidate_status(const struct candidate *candidate, struct candidate_status *status);

/** @return how many seconds the term `epoch` may act on; 0 when it is over; infinity without a
 * deadline. */
double candidate_term_remaining(const struct candidate *candidate, uint64_t epoch);

#endif

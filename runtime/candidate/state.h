/**
 * The state of a candidate. Only the files of this folder know it.
 */
#ifndef CROWN_CANDIDATE_STATE_H
#define CROWN_CANDIDATE_STATE_H

#include "base/clock.h"
#include "base/heap.h"
#include "candidate/feed.h"
#include "candidate/mailbox.h"
#include "child/child.h"
#include "child/exec.h"
#include "child/options.h"
#include "child/streams.h"
#include "election/state.h"
#include "lua/task.h"
#include "telemetry/telemetry.h"

enum candidate_call { CALL_NONE, CALL_CLAIM, CALL_REFRESH, CALL_INFO, CALL_ABDICATE };

/** The leader's or the follower's command: workload.c, signal_mode.c. */
struct workload {
    struct candidate *candidate;
    struct child child;
    struct streams streams;
    enum election_role role;
    bool exited; /* EXITED was told: GONE need not tell it again */
    bool stop_requested;
    bool killed; /* KILLED was told: its keeper ended it, not it itself */
    bool unstartable;
    int status;

    /* Signal mode. */
    int signal; /* waits until the command has a handler for it; 0: none */
    int64_t signal_until_ns, settled_ns;
    struct loop_deadline signal_timer;
};

struct candidate {
    struct candidate_env *env;
    const struct candidate_hands *hands;
    struct candidate_queue *queue; /* feed.c: while a step's actions are carried out; else NULL */
    struct telemetry_source source;
    struct list_node link; /* in the table of candidates */
    char *name;
    char *oracle;
    struct election election;
    struct loop_deadline timer;
    int object; /* registry reference of the Lua object */
    bool has_won, has_lost, has_campaign;
    bool started, finished, asked_to_stop;

    /* One oracle call at a time. */
    struct task *call;
    enum candidate_call call_kind;
    uint32_t call_attempt;
    int64_t call_until_ns;
    struct task_scope calls; /* oracle calls, campaign and lost handlers */
    struct task_scope term;  /* won and all it spawned */
    struct task *won;
    struct task *lost;
    struct mailbox mailbox; /* for handle_info */

    /* Who leads, as far as is known. */
    char *leader;
    uint64_t leader_epoch;
    int64_t leader_expires_ns;
    char *failure; /* why the store gave no answer, as long as it gives none */

    struct child_options *child_options[2]; /* by role */
    struct workload *workload;              /* the one that runs, or NULL */
    struct workload *standing;              /* in signal mode: lives on between terms, or NULL */
    struct exec_group execs;                /* commands that the term's tasks run */
    int hold_fd;                            /* kept open by the child's tree; -1: none */
    struct heap_node deadman; /* the instant at which Lua of the term must be over: deadmen.h */
};

/** The options that a command was started with. */
static inline const struct child_options *workload_options(const struct workload *workload)
{
    return workload->candidate->child_options[workload->role];
}

#endif

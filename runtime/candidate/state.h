/**
 * The state of a candidate. Only the files of this folder know it.
 */
#ifndef CROWN_CANDIDATE_STATE_H
#define CROWN_CANDIDATE_STATE_H

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/scope.h"
#include "candidate/feed.h"
#include "candidate/mailbox.h"
#include "candidate/silence.h"
#include "child/child.h"
#include "child/options.h"
#include "child/streams.h"
#include "election/state.h"
#include "lua/task.h"
#include "telemetry/telemetry.h"

/** What a candidate in line waits for, or with: starts.c. */
enum candidate_waits {
    CANDIDATE_WAITS_TO_START = 1,
    CANDIDATE_WAITS_TO_LOOK = 2, /* its timer has fired */
    CANDIDATE_WAITS_WITH_MESSAGE = 4,
};

enum candidate_call { CALL_NONE, CALL_CLAIM, CALL_REFRESH, CALL_INFO, CALL_ABDICATE };

/** The leader's or the follower's command: workload.c, signal_mode.c. */
struct workload {
    struct candidate *candidate;
    struct scope_member member; /* of the term, or of the candidate */
    struct child child;
    struct streams streams;
    struct silence silence;
    enum election_role role;
    bool exited; /* EXITED was told: GONE need not tell it again */
    bool stop_requested;
    bool stopped; /* SIGNALLED was told: its keeper sent it what it has to end by */
    bool killed;  /* KILLED was told: its keeper ended it, not it itself */
    bool unstartable;
    bool fenced;   /* told to go: it is killed when that says, whatever the lease does */
    bool unfenced; /* its term is over, it works on, and nothing tells it to stop */
    int status;

    /* Signal mode. */
    int signal;   /* waits until the command has a handler for it; 0: none */
    bool doubted; /* it may be an interactive shell, and is looked at once more */
    int64_t signal_until_ns, settled_ns;
    struct loop_deadline signal_timer;
};

/** What a term has started here, and until when it may run: term.c. */
struct term {
    struct scope *scope; /* NULL: nothing of a term has begun to run */
    struct scope *lost;  /* NULL: `lost` was not run in this term */
    struct task *lost_task;
    bool untold; /* there is a `won`, and it has not begun to run: then there is no `lost` either */
    struct scope_instants instants;
    struct heap_node deadman; /* the instant at which its Lua must be over: deadmen.h */
    struct scope_hold hold;   /* kept open by the child's tree */
};

/** What its commands are, and those that run. */
struct commands {
    struct child_options *options[2]; /* by role */
    struct workload *workload;        /* the one that runs, or NULL */
    struct workload *standing;        /* in signal mode: lives on between terms, or NULL */
    struct tail tail;                 /* the end of what the leader's has written */
    int status;                       /* of the leader's, as of waitpid(2), where one has */
    bool ended;
    uint32_t restarted[ELECTION_MAX_RESTARTS]; /* the core's */
};

#define OUTAGE_REASONS_MOST 16 /* that vary have been told often enough by then */

/** The store gives no answer: outage.c. */
struct outage {
    int64_t since_ns;
    char *failure; /* why, as was said last */
    bool answers;  /* and yet it answers: that is what it says */
    unsigned count;
    char *told[OUTAGE_REASONS_MOST]; /* with these it was told already */
};

struct bars;

struct candidate {
    struct candidate_env *env;
    struct candidate_queue *queue; /* feed.c: while a step's actions are carried out; else NULL */
    struct telemetry_source source;
    struct list_node link;   /* in the table of candidates */
    struct list_node recent; /* there too, in the order of the last changes */
    uint64_t stamp;          /* of the last change */
    struct list_node start;
    const char *name;       /* in one piece of memory with this */
    char *key;              /* name and node, where it has a node of its own; else NULL */
    struct candidate *twin; /* another candidate of the same election here: candidates.c */
    const char *store;      /* shared; NULL: not known */
    const char *oracle;     /* shared, as the configuration, `leader` and `told.leader` */
    struct election election;
    struct loop_deadline timer;
    uint32_t call_attempt;
    int object; /* registry reference of the Lua object */
    bool has_won, has_lost, has_campaign, has_leader;
    bool started;
    uint8_t waits; /* in `start`, to begin: enum candidate_waits */
    enum candidate_call call_kind : 8;
    enum election_phase shown_phase : 8; /* what env->changed was told of last */
    bool finished;                       /* by the core: nothing is fed any more */
    bool ended;                          /* and all that it has started is gone */
    bool doubted;                        /* the store may have forgotten who leads: sat out */
    bool stands;                         /* candidate_stand */
    bool denied_hears;                   /* what it is told may end the doubt before its time */
    bool denied_unsure;                  /* nobody knows yet whether the holder lives */
    struct scope *scope; /* what lives as long as the election: its oracle calls and what they have
                            opened, a command that belongs to no term; NULL: nothing does now */
    struct term *term;   /* NULL: nothing can run in one */

    /* One oracle call at a time: `call`, or `asked`, where it is its refresher's. */
    struct task *call;
    struct op *asked;
    struct refresher *refresher; /* of the last grant, or NULL */
    int64_t call_began_ns, call_until_ns;
    struct mailbox mailbox; /* for handle_info */

    /* Who leads, as far as is known. */
    const char *leader;
    uint64_t leader_epoch;
    int64_t leader_expires_ns;
    struct told { /* the leader that was told of last */
        const char *leader;
        uint64_t epoch;
    } told;

    /* What the store says, or does not. */
    struct outage *outage; /* NULL: it answers */
    int64_t answered_ns;   /* TIME_NEVER: it never answered */
    char *denied_because;  /* as the last denial said, or NULL */
    struct bars *bars;     /* what speaks against leading, in words; NULL: nothing */

    struct commands *commands; /* NULL: there are none */
};

/** @return what the journal knows it by: no other candidate of this runtime. */
static inline const char *candidate_key(const struct candidate *candidate)
{
    return candidate->key != NULL ? candidate->key : candidate->name;
}

/** @return the node that it takes part as, or NULL: the runtime's. */
static inline const char *candidate_own_node(const struct candidate *candidate)
{
    return candidate->key != NULL ? candidate->key + strlen(candidate->name) + 1 : NULL;
}

/** @return what its command in that role is, or NULL: there is none. */
static inline const struct child_options *candidate_options(const struct candidate *candidate,
                                                            enum election_role role)
{
    return candidate->commands != NULL ? candidate->commands->options[role] : NULL;
}

/** The options that a command was started with. */
static inline const struct child_options *workload_options(const struct workload *workload)
{
    return candidate_options(workload->candidate, workload->role);
}

#endif

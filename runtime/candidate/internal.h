/**
 * The inside of a candidate, shared by candidate.c (events and actions), calls.c (oracle calls and
 * handlers) and workload.c (the process it runs). Nobody else includes this.
 */
#ifndef CROWN_CANDIDATE_INTERNAL_H
#define CROWN_CANDIDATE_INTERNAL_H

#include "base/clock.h"
#include "base/heap.h"
#include "candidate/candidate.h"
#include "child/capture.h"
#include "child/child.h"
#include "election/state.h"
#include "lua/task.h"
#include "telemetry/telemetry.h"

#define CANDIDATE_MAX_MESSAGES                                                                     \
    1024                        /* waiting for handle_info; more means that nobody handles them */
#define CANDIDATE_MAX_EVENTS 16 /* fed while a step's actions are carried out */

enum candidate_call { CALL_NONE, CALL_CLAIM, CALL_REFRESH, CALL_INFO, CALL_ABDICATE };

struct candidate_child {
    struct candidate *candidate;
    struct process process;
    struct capture capture[3]; /* of stdout and stderr, where they go to the log */
    enum election_role role;
    bool exited; /* EXITED was told: GONE need not tell it again */
    bool stop_requested;
    bool unstartable;
    int status;

    /* Signal mode. */
    int signal; /* waits until the command has a handler for it; 0: none */
    int64_t signal_until_ns, settled_ns;
    struct loop_deadline signal_timer;
};

struct candidate {
    struct host *host;
    struct list_node link; /* in the registry */
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

    /* Messages for handle_info, a ring of registry references. */
    int *messages;
    unsigned message_first, message_count, message_room;

    /* Who leads, as far as is known. */
    char *leader;
    uint64_t leader_epoch;
    int64_t leader_expires_ns;
    char *failure; /* why the store gave no answer, as long as it gives none */

    struct child_options *child_options[2]; /* by role */
    struct candidate_child *child;          /* the one that runs, or NULL */
    struct candidate_child *standing;       /* in signal mode: lives on between terms, or NULL */
    struct list execs;                      /* commands that the term's tasks run */
    int hold_fd;                            /* kept open by the child's tree; -1: none */
    int64_t deadman_ns; /* instant at which Lua of the term must be over; TIME_NEVER */
    struct heap_node deadman_node;

    struct candidate_queue *queue; /* while a step's actions are carried out; else NULL */
};

/* Events that came while actions were carried out: on the stack of candidate_feed. */
struct candidate_queue {
    struct election_event events[CANDIDATE_MAX_EVENTS];
    unsigned count;
};

/* candidate.c */
void candidate_feed(struct candidate *candidate, const struct election_event *event);
void candidate_feed_type(struct candidate *candidate, enum election_event_type type);

/* calls.c: each starts a task; its result comes back as an event. */
void calls_oracle(struct candidate *candidate, enum candidate_call kind,
                  const struct election_action *action);
void calls_cancel(struct candidate *candidate);
void calls_won(struct candidate *candidate, uint64_t epoch);
void calls_lost(struct candidate *candidate, enum election_reason reason);
void calls_lost_over(struct candidate *candidate);
void calls_free(struct candidate *candidate);

/* workload.c */
void child_start(struct candidate *candidate, const struct election_action *action);
void child_stop(struct candidate *candidate, int64_t kill_at_ns);
void child_set_deadline(struct candidate *candidate, const struct election_action *action);
void child_free(struct candidate *candidate);
/** The options that a child was started with. */
const struct child_options *child_options_of(const struct candidate *candidate,
                                             const struct candidate_child *child);

/* signal_mode.c: commands in signal mode. */
bool standing_take_up(struct candidate *candidate, const struct election_action *action);
void standing_tell(struct candidate_child *child, int signal);
bool standing_leave(struct candidate *candidate, int64_t kill_at_ns);
void standing_gone(struct candidate *candidate);
bool standing_stop(struct candidate *candidate);

#endif

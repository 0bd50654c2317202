/**
 * A small world for looking at all of it: two candidates with the real core, a store, for each a
 * keeper with a child and one command of the term. Time goes in steps of a tenth of the lease;
 * whatever can happen within a step happens in every order.
 *
 * Instants are kept relative to a fixed `now`, epochs and numbers relative to the newest, and what
 * no decision depends on is cleared: then a state that comes again is the same bytes.
 */
#ifndef CROWN_SIM_EXHAUST_MODEL_H
#define CROWN_SIM_EXHAUST_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../mutate.h"
#include "../store.h"
#include "../watch.h"

#define MODEL_CANDIDATES 2
#define MODEL_REQUESTS 3 /* under way at once, of one candidate, at the most */

enum process { PROCESS_NONE, PROCESS_RUNS, PROCESS_STOPPING, PROCESS_DYING, PROCESS_STUCK };

struct request {
    enum store_verb verb; /* STORE_NOTHING: none */
    uint32_t age;         /* in steps */
    bool current;         /* of the call in flight: its reply is waited for */
    uint64_t claim;
};

struct half {
    struct election core;
    struct watch watch;
    bool up, paused, finished, stopped;
    bool doubts; /* the store forgot: the next reply tells the client so */
    /* The call in flight. */
    enum store_verb in_flight;
    int64_t sent_ns;
    uint64_t claim;
    struct request requests[MODEL_REQUESTS];
    bool replied;
    uint32_t reply_age;
    struct store_reply reply;
    /* What runs. */
    enum process child, command;
    uint32_t child_age, command_age; /* since SIGKILL */
    bool tasks, closing, lost, lost_late;
    int64_t kill_at_ns, stop_kill_ns, deadline_ns;
    /* Told to the core as soon as its runtime runs. */
    bool tell_child_gone, tell_term_gone, tell_lost_done;
};

struct model {
    struct store store;
    struct half halves[MODEL_CANDIDATES];
    uint64_t last_epoch; /* of the last term that began */
    int64_t doubted_ns;  /* until then the store doubts itself to whoever comes new */
    uint32_t faults;     /* that may still happen */
    uint32_t padding;
};

/** What can happen; `who` and `which` say to whom. */
enum move_kind {
    MOVE_START,
    MOVE_TIMER,
    MOVE_SERVE, /* `which` request arrives at the store */
    MOVE_REPLY,
    MOVE_CHILD_GONE,
    MOVE_TERM_GONE,
    MOVE_LOST_DONE,
    MOVE_CHILD_DIES,
    MOVE_COMMAND_DIES,
    MOVE_LOST_RETURNS,
    MOVE_RESUME,
    MOVE_ALLOW, /* what spoke against its leading is over */
    MOVE_STEP,  /* time goes on */
    /* Faults. */
    MOVE_LOSE_REQUEST,
    MOVE_LOSE_REPLY,
    MOVE_UNKNOWN, /* the reply is no answer */
    MOVE_CRASH,
    MOVE_PAUSE,
    MOVE_STUCK, /* the kernel does not let go of a killed tree */
    MOVE_CHILD_FAILS,
    MOVE_ABDICATE,
    MOVE_BAR, /* its health check says no */
    MOVE_STOP,
    MOVE_MESSAGE,
    MOVE_EVICT,
    MOVE_FORGET,
    MOVE_GO_BACK, /* the store has older data, and only the epochs show it */
    MOVE_COUNT
};

struct move {
    uint8_t kind, who, which;
};

#define MODEL_MOVES_MAX 64

struct model_bounds {
    unsigned faults;   /* in all */
    unsigned delay;    /* the most steps that a message takes */
    unsigned patience; /* the most steps that a call may take */
    unsigned requests; /* the most that are under way at once, of one candidate */
    bool monitor_leader;
    enum mutation mutation;
};

void model_begin(struct model *model, const struct model_bounds *bounds);
/** Exchanges the candidates. */
void model_mirror(struct model *model);
/** @return how many moves there are in this state. */
unsigned model_moves(const struct model *model, struct move moves[MODEL_MOVES_MAX]);
/**
 * Makes a move, and the state canonical.
 * @param out where to write what the core was told and decided, as a scenario; or NULL.
 * @return the promise that is broken, or NULL.
 */
const char *model_move(struct model *model, const struct move *move, FILE *out);
/** @return a move in words, for a comment. */
const char *model_move_name(enum move_kind kind);
/** Writes the options of the candidates as a scenario's. */
void model_print_options(FILE *out);

#endif

/**
 * The inside of a virtual cluster: what its files share. time.c plans and draws, host.c is what a
 * host does with processes, hands.c carries out the core's actions, link.c is the way to the store
 * and back, faults.c breaks things, promises.c and watch.c watch, world.c puts all together.
 */
#ifndef CROWN_SIM_CLUSTER_H
#define CROWN_SIM_CLUSTER_H

#include "base/clock.h"
#include "base/heap.h"
#include "base/random.h"
#include "election/state.h"
#include "store.h"
#include "watch.h"
#include "world.h"

#define CANDIDATES_MAX 4
#define EXECS_MAX 3
#define FAULTS_UNTIL (25 * NS_PER_S)
#define ENDS_AT (90 * NS_PER_S)
#define PEACE_NS (40 * NS_PER_S) /* the longest that nobody may lead in peace */
#define EVENTS_MAX 4096
#define EPOCH_BEFORE 100     /* more than are given out while a loss of memory is sat out */
#define DRIFT_MOST_PPM 10000 /* what the margin's 1 % of a TTL is for */

enum kind {
    TIMER,
    REPLY,
    CORE_EVENT,
    TERM_EVENT, /* a CORE_EVENT that comes to nothing when its term is over */
    LOST_RETURNS,
    RULES, /* the candidate looks at its rules of who leads and when */
    /* Those above wait for a runtime that is stopped; those below need none. */
    REQUEST,
    CHILD_EXIT,
    TREE_DEAD,
    EXEC_DEAD,
    KEEPER,
    DEADMAN,
    RESUME,
    RESTART,
    WATCH,
    FAULT
};

struct happening {
    struct heap_node node;
    enum kind kind;
    unsigned candidate;
    unsigned incarnation; /* of the runtime that it concerns */
    uint64_t serial;      /* of the timer, the child, the exec, the term, the call */
    int64_t instant;      /* on the local clock: what a keeper or a dead-man timer was told */
    struct store_request request;
    struct store_reply reply;
    bool unknown; /* the oracle could make nothing of the reply */
    struct election_event event;
    bool used;
};

/* A command that the term's Lua runs, or `lost`. */
struct exec {
    bool alive, dying, of_lost;
    uint64_t serial;
};

struct candidate {
    struct election core;
    uint32_t restarted[ELECTION_MAX_RESTARTS]; /* the core's */
    bool up, paused, finished;
    bool stopped; /* told to stop, so that it may finish */
    unsigned incarnation;
    int64_t offset_ns, drift_ppm;
    int64_t resume_at;
    uint64_t timer_serial;
    unsigned rules;    /* what speaks against its leading: told to each of its runtimes */
    int64_t barred_ns; /* since when its runtime knows */

    /* The call in flight. */
    uint32_t attempt; /* 0: none */
    enum store_verb verb;
    int64_t sent_ns, answered_ns; /* when it was sent, and the one that was answered last */
    uint64_t claim;               /* number of the last claim */
    unsigned known_life;

    /* Its place in a queue: the claim by which it was next and from when that counts, and the
     * word that the one before it has gone. */
    uint64_t next_claim;
    int64_t next_since_ns;
    struct {
        uint64_t claim, epoch;
        unsigned life;
    } word;

    /* The processes and the Lua of a term; `stuck`: killed, but the kernel does not let go. */
    bool child, leader_child, dying, stuck, stop_told;
    uint64_t child_serial;
    struct exec execs[EXECS_MAX];
    bool tasks, closing, lost, lost_ending;
    bool
        lost_late; /* begun after the deadline, or owed: it is news, and not of the term any more */
    uint64_t term, term_life;
    int64_t kill_at_ns, stop_kill_ns; /* on the local clock */
    int64_t deadline_ns;              /* of the dead-man timer; TIME_NEVER: disarmed */

    struct watch watch;
};

/* How a loss of the store's memory shows. */
enum memory {
    MEMORY_SERVER, /* the server knows, and denies for one TTL */
    MEMORY_CLIENT, /* each client finds out by itself, and denies once */
    MEMORY_SILENT, /* nobody but the core can see it, by the epoch */
};

struct world {
    struct random random;
    enum mutation mutation;
    bool trace;
    int64_t now;
    struct heap heap;
    struct happening happenings[EVENTS_MAX];
    unsigned free_from;
    struct store store;
    enum memory memory;
    bool has_rules;    /* candidates have their own rules of who leads and when */
    int64_t forgot_at; /* a silent loss of memory: nobody may crash for one TTL */
    unsigned count;
    struct candidate candidates[CANDIDATES_MAX];
    uint64_t claims, serials;
    uint64_t last_epoch, last_life;
    int64_t last_acting;
    int64_t slack_ns, lead_ns; /* how late a keeper may be, and how long a tree takes to die */
    struct election_config config;
    struct world_result result;
};

/* time.c */
int64_t below(struct world *world, int64_t bound);
bool chance(struct world *world, unsigned in_thousand);
/** @return the candidate's own clock. */
int64_t local_now(const struct world *world, const struct candidate *candidate);
/** @return when the candidate's clock shows an instant, or later by less than 2 ns. */
int64_t global_of(const struct candidate *candidate, int64_t local_ns);
/** The happening is pooled: valid until the next plan. */
struct happening *plan(struct world *world, int64_t at, enum kind kind, unsigned who);
/** @return how long something takes that is mostly quick, sometimes longer than a lease, and often
 * over just before, at or just after an instant that matters. */
int64_t any_delay(struct world *world, unsigned who, int64_t usual_ns);
/** @return an instant just before, at or just after one that matters to a candidate, or -1. */
int64_t edge(struct world *world, unsigned who);
/** @return from 0 to the bound, both most often. */
int64_t extreme(struct world *world, int64_t bound);

/* host.c */
void host_start_runtime(struct world *world, unsigned who);
/** Tells a candidate which of its rules speak against its leading now. */
void host_tell_rules(struct world *world, unsigned who);
void host_crash(struct world *world, unsigned who);
void host_start_child(struct world *world, unsigned who, const struct election_action *action);
void host_start_exec(struct world *world, unsigned who, bool of_lost);
void host_kill_execs(struct world *world, unsigned who, bool of_lost);
void host_watch(struct world *world, unsigned who);
void host_happen(struct world *world, const struct happening *happening);

/* hands.c */
void feed(struct world *world, unsigned who, struct election_event event);
void feed_later(struct world *world, unsigned who, int64_t after, struct election_event event);
/** Tells the core TERM_GONE and LOST_DONE, where they have come about. */
void hands_settle(struct world *world, unsigned who);
void hands_lost_returns(struct world *world, unsigned who);
void hands_forget(struct candidate *candidate); /* the runtime died */

/* link.c */
void link_send(struct world *world, unsigned who, enum store_verb verb, uint32_t attempt);
void link_serve(struct world *world, const struct happening *happening);
void link_deliver(struct world *world, const struct happening *happening);
/** Tells whoever watches, without fail, that the lease may be free, and who has it by the queue. */
void link_watch(struct world *world);
/** Whatever it knew of a queue counts no more. */
void link_forget(struct candidate *candidate);

/* faults.c */
void faults_inject(struct world *world);

/* promises.c */
void promise_broken(struct world *world, unsigned who, const char *what);
void promise_nobody_overlaps(struct world *world);
void promise_told(struct world *world, unsigned who, const struct election_event *event);
void promise_action(struct world *world, unsigned who, const struct election_action *action);
void promise_fed(struct world *world, unsigned who, const struct election_event *event,
                 enum election_phase before, enum store_verb answered);
void promise_somebody_leads(struct world *world);
bool term_exists(const struct candidate *candidate);

#endif

/**
 * THE CORE: may this candidate lead? A pure state machine. It has no clock, does no IO, knows no
 * Lua and allocates nothing: events go in, each with the instant it happened; a list of actions
 * comes out, to be carried out in order. Only candidate/candidate.c executes them in production;
 * the simulation in spec/sim executes them in a virtual cluster.
 *
 * The promises it keeps (numbers as in docs/safety.md):
 *  1  a leader acts only up to `deadline` = when the request was sent + TTL - margin;
 *  2  timing that could overlap is refused before the first claim (timing.h);
 *  3  unknown while leading: try again, lead on, step down in time;
 *     (Lua of the term is cut earlier, at kill_at: at the deadline itself the runtime's dead-man
 *     timer kills the runtime, which must not happen to one that is well);
 *  4  the lease is never released while anything of the term may run;
 *  5  a grant that arrives after its attempt was given up is released again, and a claim that
 *     ended unknown, also one made inside handle_info, is followed by a release and a new claim;
 *  7  a follower that knows when the lease ends claims then, plus a few ms of jitter;
 *  9  while a child is being stopped the lease is refreshed on, up to the kill instant;
 * 10  a definite loss stops at once; `lost` runs exactly once for each `won`;
 * 12  after a store has forgotten neither a claim nor a message is acted on before one TTL is over;
 * 13  a lost election is contended again; only STOP ends it;
 * 16  a candidate that is barred does not claim, and a leader that becomes so steps down in order.
 *
 * A term in actions (->) and the events that answer them (<-):
 *
 *   -> SET_DEADLINE                      granted; again with each refresh
 *   -> RUN_WON, START_CHILD              all that is started from now on belongs to the term
 *   -> STOP_CHILD  <- CHILD_GONE         lost: the child's whole tree ends
 *   -> CLOSE_TERM  <- TERM_GONE          the tree is gone, or kill_at has come: all that the term
 *                                        has started begins to end; answered when the last is gone
 *   -> RUN_LOST    <- LOST_DONE          at TERM_GONE, at kill_at in any case
 *   -> CLOSE_LOST                        where `lost` takes too long: LOST_DONE is to follow
 *   -> CLEAR_DEADLINE                    nothing of the term, nor of `lost`, exists any more
 *   -> CALL_ABDICATE <- RELEASED         where the store may still count us as its holder
 *
 * What does not answer holds up all below it: then the lease is left to run out, never released. A
 * term that is lost before RUN_WON goes to CLEAR_DEADLINE at once.
 */
#ifndef CROWN_ELECTION_ELECTION_H
#define CROWN_ELECTION_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "election/timing.h"

/** X-macros keep the enums and the words that logs, tests and metrics print in one place. */
#define ELECTION_PHASES(X)                                                                         \
    X(INIT, "init")           /* claim_delay has not passed */                                     \
    X(FOLLOWING, "following") /* someone else leads, or nobody is known to */                      \
    X(COOLING, "cooling")     /* granted, but cool_down has not passed: not acting yet */          \
    X(LEADING, "leading")                                                                          \
    X(STEPPING, "stepping") /* no longer leader: the term ends, step by step as above */           \
    X(FINISHED, "finished") /* the user's stop, or an election that ends with its child */

#define ELECTION_EVENTS(X)                                                                         \
    X(START, "start")                                                                              \
    X(START_OWING, "start_owing") /* as START; the runtime before died in a term: `lost` first */  \
    X(TIMER, "timer")             /* the instant of the last ARM_TIMER has come */                 \
    X(GRANTED, "granted")         /* results of calls: `attempt` says which call */                \
    X(DENIED, "denied")                                                                            \
    X(EVICTED, "evicted") /* the lease is still ours, but somebody asks us to go */                \
    X(UNKNOWN, "unknown")                                                                          \
    X(NOTHING, "nothing")             /* handle_info: the message changes nothing */               \
    X(RELEASED, "released")           /* abdicate ended, well or badly */                          \
    X(MESSAGE, "message")             /* a message waits for handle_info */                        \
    X(CHILD_STARTED, "child_started") /* exec succeeded */                                         \
    X(CHILD_GONE, "child_gone")       /* the whole tree of the child is gone */                    \
    X(WON_FAILED, "won_failed")       /* the won handler raised an error */                        \
    X(TERM_GONE, "term_gone")         /* all that the term started is gone, see CLOSE_TERM */      \
    X(LOST_DONE, "lost_done")         /* `lost` and all that it started are gone */                \
    X(BARRED, "barred")               /* `bar` speaks against leading from now on */               \
    X(ALLOWED, "allowed")             /* and does so no more */                                    \
    X(CLOCK_SET, "clock_set") /* the wall clock was set: has the host stood still, unseen? */      \
    X(ABDICATE, "abdicate")   /* the user asks to step down and let others try */                  \
    X(STOP, "stop")           /* the user asks to end this election for good */

#define ELECTION_ACTIONS(X)                                                                        \
    X(CALL_CLAIM, "call_claim") /* run the oracle's function in a task, report with `attempt` */   \
    X(CALL_REFRESH, "call_refresh")                                                                \
    X(CALL_INFO, "call_info") /* handle_info with the oldest waiting message */                    \
    X(CALL_ABDICATE, "call_abdicate")                                                              \
    X(CANCEL_CALL, "cancel_call")       /* drop the call in flight: its task is never resumed */   \
    X(ARM_TIMER, "arm_timer")           /* replaces the earlier one; TIME_NEVER disarms */         \
    X(SET_DEADLINE, "set_deadline")     /* to the keeper and the runtime's own dead-man timer */   \
    X(CLEAR_DEADLINE, "clear_deadline") /* the dead-man timer: nothing is left to be cut */        \
    X(START_CHILD, "start_child")                                                                  \
    X(STOP_CHILD, "stop_child") /* stop signal now, SIGKILL to the tree at `kill_at_ns` */         \
    X(CLOSE_TERM, "close_term") /* all that it started begins to end: TERM_GONE follows */         \
    X(RUN_WON, "run_won")                                                                          \
    X(RUN_LOST, "run_lost")     /* at `until_ns` CLOSE_LOST follows */                             \
    X(CLOSE_LOST, "close_lost") /* `lost` and all that it started begin to end */                  \
    X(EMIT, "emit")             /* tell logs, metrics and subscribers */                           \
    X(FINISH, "finish")         /* nothing follows: the election may be freed */

#define ELECTION_REASONS(X)                                                                        \
    X(NONE, "none")                                                                                \
    X(DENIED, "denied")                                                                            \
    X(EXPIRED, "expired")                                                                          \
    X(EVICTED, "evicted")                                                                          \
    X(ABDICATED, "abdicated")                                                                      \
    X(CHILD_FAILED, "child_failed")                                                                \
    X(CHILD_KILLED, "child_killed") /* none of its doing */                                        \
    X(HANDLER_FAILED, "handler_failed")                                                            \
    X(UNHEALTHY, "unhealthy")                                                                      \
    X(WINDOW, "window")                                                                            \
    X(PAUSED, "paused")                                                                            \
    X(HANDOVER, "handover")                                                                        \
    X(SHUTDOWN, "shutdown")                                                                        \
    X(RUNTIME_DIED, "runtime_died")

#define ELECTION_NOTICES(X)                                                                        \
    X(CLAIMED, "leadership.claimed")                                                               \
    X(REJECTED, "leadership.rejected")                                                             \
    X(REFRESHED, "leadership.refreshed")                                                           \
    X(UNCERTAIN, "leadership.uncertain")                                                           \
    X(ACTING, "leadership.acting") /* after a cool-down only */                                    \
    X(LOST, "leadership.lost")                                                                     \
    X(CONFLICT, "leadership.conflict")                                                             \
    X(ABDICATED, "leadership.abdicated")                                                           \
    X(EVICTED, "leadership.evicted")                                                               \
    X(BARRED, "leadership.barred")                                                                 \
    X(ALLOWED, "leadership.allowed")                                                               \
    X(AMNESIA, "oracle.amnesia")                                                                   \
    X(LATE, "oracle.late") /* a grant left no time to lead */                                      \
    X(LEADER_DOWN, "monitor.leader_down")                                                          \
    X(MONITOR_TIMEOUT, "monitor.timeout")

/** What may speak against leading, whoever holds the lease: the candidate's own rules of who leads
 * and when, and what operators order. Each is set and cleared by itself; one that is set is enough.
 */
#define ELECTION_BARS(X)                                                                           \
    X(NEVER, "never")         /* it only follows */                                                \
    X(UNHEALTHY, "unhealthy") /* its health check says no, or has not said anything yet */         \
    X(WINDOW, "window")       /* it is outside of its hours */                                     \
    X(PAUSED, "paused")       /* an operator has ordered that nobody leads */                      \
    X(HANDOVER, "handover")   /* an operator has ordered that another one leads */

#define ELECTION_ENUM_BAR(name, text) ELECTION_BAR_##name,
#define ELECTION_ENUM_PHASE(name, text) ELECTION_##name,
#define ELECTION_ENUM_EVENT(name, text) ELECTION_EVENT_##name,
#define ELECTION_ENUM_ACTION(name, text) ELECTION_ACTION_##name,
#define ELECTION_ENUM_REASON(name, text) ELECTION_REASON_##name,
#define ELECTION_ENUM_NOTICE(name, text) ELECTION_NOTICE_##name,

enum election_phase { ELECTION_PHASES(ELECTION_ENUM_PHASE) ELECTION_PHASE_COUNT };
enum election_event_type { ELECTION_EVENTS(ELECTION_ENUM_EVENT) ELECTION_EVENT_COUNT };
enum election_action_type { ELECTION_ACTIONS(ELECTION_ENUM_ACTION) ELECTION_ACTION_COUNT };
enum election_reason { ELECTION_REASONS(ELECTION_ENUM_REASON) ELECTION_REASON_COUNT };
enum election_bar { ELECTION_BARS(ELECTION_ENUM_BAR) ELECTION_BAR_COUNT };
enum election_notice { ELECTION_NOTICES(ELECTION_ENUM_NOTICE) ELECTION_NOTICE_COUNT };

enum election_role { ELECTION_ROLE_LEADER, ELECTION_ROLE_FOLLOWER };

/** What happens when the leader's child exits by itself. */
enum election_restart {
    ELECTION_RESTART_PERMANENT, /* always restarted */
    ELECTION_RESTART_TRANSIENT, /* restarted when it failed; after success the term goes on */
    ELECTION_RESTART_TEMPORARY, /* never restarted; a failure ends the term */
    ELECTION_RESTART_FINISH,    /* the election ends with its child (crown-lua run) */
};

#define ELECTION_MAX_RESTARTS 16 /* bound of restart.max: the instants are kept */

struct election_config {
    struct election_timing timing; /* validated by timing_check, see timing.h */
    int64_t claim_delay_ns;        /* before a first claim */
    int64_t retry_ns;              /* between claims where the oracle names no instant */
    int64_t stand_back_ns;         /* after a term that was given up; at least retry_ns */
    int64_t ttl_ns;                /* by the options, for what is shown; 0: not known */
    int64_t cool_down_ns;          /* between granted and acting; a grant's may be longer */
    int64_t call_timeout_ns;       /* the most that one oracle call may take */
    int64_t lost_timeout_ns;       /* the most that `lost` may take where no deadline bounds it */
    bool monitor_leader;           /* false: claim only at start and when handle_info says so */
    bool has_child;                /* a leader child is configured */
    bool has_follower_child;
    bool has_abdicate; /* the oracle can release */
    bool leaves;       /* abdicate is called at the end also where nothing is led */
    enum election_restart restart;
    unsigned restart_max;
    int64_t restart_within_ns;
    int64_t restart_backoff_first_ns;
    int64_t restart_backoff_most_ns;
    uint64_t seed; /* of the jitter */
};

/** One thing that happened. `attempt` is copied from the CALL_* action that it answers. */
struct election_event {
    enum election_event_type type;
    int64_t at_ns;
    uint32_t attempt;      /* GRANTED, DENIED, EVICTED, UNKNOWN, NOTHING, RELEASED */
    enum election_bar bar; /* BARRED, ALLOWED */
    struct {
        int64_t refresh_ns;   /* TIME_NEVER: event-driven */
        int64_t ttl_ns;       /* 0: not said */
        uint64_t epoch;       /* 0: not said */
        int64_t past_ns;      /* for how long it had counted before the call that it answers */
        int64_t cool_down_ns; /* of a claim: act no sooner, whatever the options say */
    } grant;
    struct {
        int64_t expires_ns; /* until the holder's lease ends; -1: not said */
        int64_t retry_ns;   /* without expires_ns: when to ask again; 0: the configured retry */
        uint64_t epoch;     /* the holder's; 0: not said */
        bool amnesia;       /* the store forgot: no claim for `expires_ns` */
        bool hears;         /* with amnesia: the oracle keeps that wait, so a message may claim */
        bool nobody;        /* it names no holder */
    } denial;
    struct {
        bool answered;    /* the store has answered, with a failure */
        int64_t retry_ns; /* and when to ask again; 0: not said */
    } unknown;
    struct {
        bool failed;      /* did not exit with 0, or could not be started */
        bool unstartable; /* could not be started (no such command …): restarting is no use, the
                             term ends with child_failed at once */
        bool untold;      /* could not be given its epoch: the term ends with child_failed at once,
                             whatever the policy */
        bool killed; /* not by itself: its keeper, its warden or the time they knew of ended it,
                        though the term goes on here */
        bool kept;   /* it lives on, told that the term is over: signal mode */
    } child;
};

struct election_action {
    enum election_action_type type;
    uint32_t attempt;        /* CALL_* */
    int64_t until_ns;        /* CALL_*, RUN_LOST: the driver may rely on the core's own timer */
    int64_t at_ns;           /* ARM_TIMER */
    int64_t stop_at_ns;      /* SET_DEADLINE, START_CHILD: when the keeper itself begins to stop */
    int64_t kill_at_ns;      /* SET_DEADLINE, START_CHILD, STOP_CHILD */
    int64_t deadline_ns;     /* SET_DEADLINE, START_CHILD: nothing of the term runs past it */
    enum election_role role; /* START_CHILD */
    uint64_t epoch;          /* START_CHILD, RUN_WON, RUN_LOST, EMIT */
    enum election_reason reason; /* RUN_LOST, EMIT */
    enum election_notice notice; /* EMIT */
    enum election_bar bar;       /* EMIT of BARRED, ALLOWED */
};

#define ELECTION_MAX_ACTIONS 24
struct election_actions {
    unsigned count;
    struct election_action item[ELECTION_MAX_ACTIONS];
};

/** The state. Read it through election_look; only election_step and its arms write it. */
struct election; /* defined in election/state.h, so that its owner can embed it without a malloc */

/** What status, metrics and the Lua API show. */
struct election_view {
    enum election_phase phase;
    bool acting;    /* leading and allowed to act: term:valid() at this instant needs also now <
                       deadline */
    uint64_t epoch; /* of the current or last own term; 0 before the first */
    uint64_t terms; /* own terms so far */
    bool ending;    /* told to stop: what is released now is not claimed again */
    unsigned bars;  /* a bit 1 << ELECTION_BAR_… for each that is set; 0: it may lead */
    int64_t stop_at_ns, kill_at_ns;
    int64_t deadline_ns; /* of the term, as the two above, until nothing of it is left; TIME_NEVER
                            without one */
    int64_t next_claim_ns;
    int64_t acts_at_ns; /* when the cool-down is over; TIME_NEVER: none is under way */
    int64_t since_ns;   /* when this phase began */
    enum election_reason last_reason;
};

/**
 * Makes an election in phase INIT.
 * @param config outlives the election, or what election_share gives it instead.
 * @param restarted room for ELECTION_MAX_RESTARTS, which outlives the election; may be NULL where
 * there is no child: none is restarted then.
 * @return 0, or -1 with ERROR_USAGE where the timing could overlap (the message shows the sum).
 */
int election_init(struct election *election, const struct election_config *config,
                  uint32_t *restarted, struct crown_error *err);

/** Gives an election another copy of its configuration. `claim_delay_ns` and `seed` may be others
 * there: they are read in election_init alone, so that elections that differ in these can share. */
void election_share(struct election *election, const struct election_config *same);

/**
 * The transition: total, every phase x event pair is defined (a table in election.c).
 * @param event `at_ns` never goes back between calls.
 * @param out overwritten; to be carried out in order.
 */
void election_step(struct election *election, const struct election_event *event,
                   struct election_actions *out);

struct election_view election_look(const struct election *election);

const char *election_phase_name(enum election_phase phase);
const char *election_event_name(enum election_event_type type);
const char *election_action_name(enum election_action_type type);
const char *election_reason_name(enum election_reason reason);
const char *election_bar_name(enum election_bar bar);
const char *election_notice_name(enum election_notice notice);

#endif

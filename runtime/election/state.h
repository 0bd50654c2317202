/**
 * The state of an election, open so that its owner can embed it. Only the files of this folder
 * write to it.
 */
#ifndef CROWN_ELECTION_STATE_H
#define CROWN_ELECTION_STATE_H

#include "base/random.h"
#include "election/election.h"

/** Which oracle call is in flight. */
enum election_call {
    ELECTION_CALL_NONE,
    ELECTION_CALL_CLAIM,
    ELECTION_CALL_REFRESH,
    ELECTION_CALL_INFO,
    ELECTION_CALL_ABDICATE,
};

enum election_lost { ELECTION_LOST_IDLE, ELECTION_LOST_RUNNING, ELECTION_LOST_DONE };

struct election {
    struct election_config config;
    enum election_phase phase;
    int64_t since_ns;
    struct random random;
    int64_t armed_ns; /* what the last ARM_TIMER said */
    bool stop;        /* the user's stop: nothing but FINISHED follows */
    enum election_reason last_reason;

    struct {
        enum election_call kind;
        uint32_t attempt; /* of the last call; never reused */
        int64_t sent_ns;
        int64_t until_ns;
    } call;
    unsigned messages; /* that wait for handle_info */

    /* Following. */
    int64_t next_claim_ns;
    bool watching;          /* the next claim is due because a lease we know of ends */
    int64_t retry_after_ns; /* the backoff after an unknown claim; 0: none yet */
    int64_t stand_back_ns;  /* who has let go lets the others hear of it first */
    bool release;           /* a claim ended unknown: release, in case it was granted */
    bool amnesia_known;     /* the store forgot, we sat it out: believe its next epoch */

    /* The lease that is held. Instants are absolute. */
    uint64_t epoch, highest_epoch, terms;
    struct election_schedule schedule;
    int64_t refresh_at_ns, stop_at_ns, kill_at_ns, deadline_ns;
    int64_t uncertain_ns; /* the backoff after an unknown refresh; 0: none */
    int64_t cool_until_ns;
    bool acting; /* won was told: the term's child and tasks may run */

    /* Stepping down. */
    enum election_reason reason;
    bool ours; /* the lease is, as far as we know, still ours: refresh on, release at the end */
    bool cut;  /* the term's tasks are cancelled */
    enum election_lost lost;
    int64_t lost_until_ns;
    int64_t reclaim_ns; /* not before this instant */

    /* The child: the leader's or the follower's, one at a time. */
    struct {
        bool running; /* from START_CHILD to CHILD_GONE */
        bool stopping;
        enum election_role role;
        int64_t start_at_ns; /* TIME_NEVER: no start is due */
        unsigned restarts;   /* how many of the instants below count */
        int64_t restarted_ns[ELECTION_MAX_RESTARTS];
    } child;
};

#endif

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

/** How far a term has come. stage.c says which may follow which. */
enum election_stage {
    ELECTION_STAGE_NONE,      /* no term */
    ELECTION_STAGE_HELD,      /* the lease is ours; nothing of the term has begun to run */
    ELECTION_STAGE_ACTING,    /* `won` was told: the term's child and tasks may run */
    ELECTION_STAGE_CHILD,     /* lost: the child's tree is being stopped */
    ELECTION_STAGE_CLOSING,   /* all that the term started is ending */
    ELECTION_STAGE_LOST,      /* `lost` runs, or something of the term still does not end */
    ELECTION_STAGE_RELEASING, /* nothing of the term is left: the lease is being given back */
    ELECTION_STAGE_COUNT
};

/** May the store count us as its holder? Whoever it may count gives back before the next claim. */
enum election_hold {
    ELECTION_HOLD_NO,
    ELECTION_HOLD_PERHAPS, /* a claim ended unknown, or its grant came too late */
    ELECTION_HOLD_YES,
};

/* There may be a hundred thousand: what is small stands together. */
struct election {
    const struct election_config *config; /* its owner's */
    int64_t since_ns;
    int64_t claim_delay_ns;
    struct random random;
    int64_t armed_ns; /* what the last ARM_TIMER said */
    enum election_phase phase : 8;
    enum election_reason last_reason : 8;
    uint8_t bars; /* see election_view */
    bool stop;    /* the user's stop: nothing but FINISHED follows */
    bool left;    /* an abdicate call has been told so */

    /* Following. */
    bool watching;     /* the next claim is due because a lease we know of ends */
    bool led;          /* somebody was said to lead since our last term */
    unsigned messages; /* that wait for handle_info */
    int64_t next_claim_ns;
    int64_t retry_after_ns;      /* the backoff after an unknown claim; 0: none yet */
    int64_t claim_not_before_ns; /* nor a message: the store forgot, or we have let go */

    struct {
        enum election_call kind : 8;
        uint32_t attempt; /* of the last call; never reused */
        int64_t sent_ns;
        int64_t until_ns;
    } call;

    /* The lease that is held. Instants are absolute. */
    enum election_hold hold : 8;
    enum election_stage stage : 8;
    enum election_reason reason : 8; /* why the term ends */
    bool term_gone;                  /* TERM_GONE has come */
    bool lost_over;                  /* LOST_DONE has come */
    int64_t reclaim_ns;              /* after its end, the claim is due then */
    int64_t lost_until_ns;           /* TIME_NEVER: `lost` does not run, or was told to end */
    uint64_t epoch, terms;
    uint64_t highest_epoch;              /* that the store has told of; lower after it forgot */
    int64_t refresh_ns, stop_timeout_ns; /* as the last grant laid them out */
    int64_t refresh_at_ns, stop_at_ns, kill_at_ns, deadline_ns;
    int64_t uncertain_ns; /* the backoff after an unknown refresh; 0: none */
    int64_t cool_until_ns;

    /* The child: the leader's or the follower's, one at a time. */
    struct {
        int64_t start_at_ns; /* TIME_NEVER: no start is due */
        enum election_role role : 8;
        bool running; /* from START_CHILD to CHILD_GONE */
        bool stopping;
        bool waits;          /* the follower's: for the first answer, which may make a leader */
        uint8_t restarts;    /* how many of the instants below count */
        uint32_t *restarted; /* its owner's; in ticks: restarts.c */
    } child;
};

#endif

/**
 * The virtual store: one election's lease, or a lock that is held until its holder is gone.
 */
#ifndef CROWN_SIM_STORE_H
#define CROWN_SIM_STORE_H

#include <stdbool.h>
#include <stdint.h>

enum store_verb { STORE_NOTHING, STORE_CLAIM, STORE_REFRESH, STORE_RELEASE };

struct store_request {
    enum store_verb verb;
    unsigned candidate; /* stands for its token: the same after a restart of its runtime */
    uint64_t claim;     /* unique for each claim ever made */
};

struct store_reply {
    bool granted, evicted, amnesia;
    bool next; /* denied, and the holder when this one has gone */
    uint64_t epoch;
    unsigned life;      /* raised when the store forgets */
    int64_t past_ns;    /* for how long a grant had counted before the claim */
    int64_t expires_ns; /* of the holder's lease; -1: it has none */
};

struct store {
    bool lock;             /* held until released or freed, no TTL */
    bool release_by_token; /* a mutation */
    bool claims_unordered; /* another */
    bool epoch_reused;     /* another */
    int64_t ttl_ns;
    int64_t cool_down_ns; /* that it asks for with each grant */
    bool held;
    unsigned owner;
    uint64_t claim;
    int64_t ends_ns;
    uint64_t epoch;
    unsigned life;
    bool evict;
    int64_t sit_out_ns; /* after a loss of memory: no claims before this instant */
    bool queue;         /* who was denied first is the next holder, by a lease of its own */
    struct {
        bool there;
        unsigned owner;
        uint64_t claim, epoch;
        int64_t ends_ns;
    } next;
};

struct store_reply store_serve(struct store *store, const struct store_request *request,
                               int64_t now_ns);

/** Makes the next one the holder where that has gone. @return whether it did. */
bool store_pass_on(struct store *store, int64_t now_ns);

/** The lock's holder is gone, processes and all. */
void store_free_lock(struct store *store, unsigned candidate);

/** Everything is forgotten, the epoch too; who knows that denies claims until `sit_out_ns`. */
void store_forget(struct store *store, int64_t sit_out_ns);

#endif

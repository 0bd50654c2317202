/**
 * Refreshes and releases without a task each. An oracle may hand out a refresher with a grant: that
 * asks the store for the lease, and says of the answer no more than whether all is as it was. Where
 * it is not, the oracle's own `refresh` asks again and judges.
 */
#ifndef CROWN_CANDIDATE_REFRESHER_H
#define CROWN_CANDIDATE_REFRESHER_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/op.h"

enum refresher_answer {
    REFRESHER_SAME,    /* the lease is ours as before, from now on for another TTL */
    REFRESHER_OTHER,   /* something has changed: ask the oracle */
    REFRESHER_UNKNOWN, /* there was no answer */
};

/** The term whose lease is to be refreshed. */
struct refresher_term {
    uint64_t epoch;
    int64_t asked_ns; /* when the refresh was called */
    bool stands;      /* candidate_stand: Lua knows of nothing that speaks against it */
};

/** What is said of it. Its grant counts `ttl_ns` from `past_ns` before the call. */
struct refresher_found {
    int64_t ttl_ns, delay_ns, past_ns;
    struct crown_error err; /* why nothing is known */
    const char *code;       /* and "store" where the store has answered that, else NULL */
};

struct refresher {
    int64_t ttl_ns, delay_ns; /* of each grant that it stands for */
    /** Grants at once by what was asked for others too: as `look`, with REFRESHER_SAME.
     * @return false where it cannot. NULL: it never can. */
    bool (*grants)(struct refresher *refresher, const struct refresher_term *term,
                   struct refresher_found *found);
    /** Asks for one lease. The oracle's state is on top of L and stays there. @return an op that
     * completes with the answer, for `look` or op_cancel; NULL where it cannot ask for this one. */
    struct op *(*ask)(struct refresher *refresher, const struct refresher_term *term, lua_State *L);
    /** Reads the answer of a completed op, and frees it. @param found has the refresher's own
     * times, and no past. */
    enum refresher_answer (*look)(struct refresher *refresher, struct op *op,
                                  const struct refresher_term *term, struct refresher_found *found);
    /** Gives the lease back, in place of the oracle's `abdicate`; whoever asks for it makes the
     * state's `leading` false. State and result as of `ask`; the op is for `forget` or
     * op_cancel. NULL: only the oracle can. */
    struct op *(*release)(struct refresher *refresher, lua_State *L);
    /** Frees a completed op. */
    void (*forget)(struct op *op);
};

/** What Lua sees of one: a userdata of this type that begins with it, and is never collected. */
#define REFRESHER_TYPE "crown.refresher"

/** Makes the userdata on top of the stack such a one, and keeps it. */
void refresher_keep(lua_State *L);

#endif

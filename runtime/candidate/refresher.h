/**
 * Refreshes and releases without a task each. An oracle may hand out a refresher with a grant: that
 * asks the store for the lease, and says of the answer no more than whether all is as it was. Where
 * it is not, the oracle's own `refresh` asks again and judges.
 */
#ifndef CROWN_CANDIDATE_REFRESHER_H
#define CROWN_CANDIDATE_REFRESHER_H

#include <lua.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/op.h"

enum refresher_answer {
    REFRESHER_SAME,    /* the lease is ours as before, from now on for another TTL */
    REFRESHER_OTHER,   /* something has changed: ask the oracle */
    REFRESHER_UNKNOWN, /* there was no answer */
};

struct refresher {
    int64_t ttl_ns, delay_ns; /* of each grant that it stands for */
    /** Asks for one lease. The oracle's state is on top of L and stays there. @return an op that
     * completes with the answer, for `look` or op_cancel; NULL where it cannot ask for this one. */
    struct op *(*ask)(struct refresher *refresher, lua_State *L);
    /** Reads the answer of a completed op, and frees it. @param epoch of the term. @param err why
     * there was none. */
    enum refresher_answer (*look)(struct refresher *refresher, struct op *op, uint64_t epoch,
                                  struct crown_error *err);
    /** Gives the lease back, in place of the oracle's `abdicate`; whoever asks for it makes the
     * state's `leading` false. State and result as of `ask`; the op is for `forget` or
     * op_cancel. */
    struct op *(*release)(struct refresher *refresher, lua_State *L);
    /** Frees a completed op. */
    void (*forget)(struct op *op);
};

/** What Lua sees of one: a userdata of this type that begins with it, and is never collected. */
#define REFRESHER_TYPE "crown.refresher"

/** Makes the userdata on top of the stack such a one, and keeps it. */
void refresher_keep(lua_State *L);

#endif

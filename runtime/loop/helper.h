/**
 * Work that may block, or compute without bound, on a thread of its own: the loop never waits for
 * it, and goes on when nobody wants the result any more. A thread cannot be ended from outside; one
 * that is given up runs on until its work notices, and only so many of those are allowed.
 */
#ifndef CROWN_LOOP_HELPER_H
#define CROWN_LOOP_HELPER_H

#include <stdbool.h>

#include "base/error.h"
#include "loop/loop.h"

struct helper;

/** What is done there. `work` is handed from one to the other, never used by two threads at once.
 */
struct helper_kind {
    const char *name; /* for errors, and the thread's name: at most 15 bytes */
    /** On the thread, with all signals blocked. Not called for what was given up before.
     * @param given_up becomes readable when nobody waits any more: for poll(2). */
    void (*run)(void *work, int given_up);
    /** On the loop, once `run` has returned: takes `work` over. Never from within helper_start. */
    void (*done)(void *context, void *work);
    /** Instead of `done` after helper_abandon, on whichever thread is the last to need it. */
    void (*drop)(void *work);
    /** That `run` uses no descriptor of the process but `given_up` and the standard streams, and
     * leaves none behind. It then has no other, so that a disk on which it hangs for ever keeps
     * nothing open of a process that was killed. */
    bool own_table;
};

/** The most threads that run on for one cause though they were given up; more are refused. */
#define HELPERS_ABANDONED_MAX 8

/**
 * Starts.
 * @param kind static.
 * @param cause what the work may be stuck with: a server, a disk. What is stuck with one leaves the
 * others their threads. Copied.
 * @return for helper_abandon, until `done` was called; NULL with `err`: `work` is then still the
 * caller's.
 */
struct helper *helper_start(struct loop *loop, const struct helper_kind *kind, const char *cause,
                            void *work, void *context, struct crown_error *err);
/**
 * Waits, holding the loop: for what ends with it. `done` is called from within; after so long it is
 * helper_abandon instead. NULL is fine.
 * @return whether it is done.
 */
bool helper_finish(struct helper *helper, int milliseconds);
/** Nobody waits for more than what there is: `given_up` becomes readable, and `done` follows. Once,
 * and not before helper_abandon. Until then it counts among those that were given up. */
void helper_hurry(struct helper *helper);
/** Nobody wants the result any more: `drop` follows, perhaps much later. NULL is fine. */
void helper_abandon(struct helper *helper);

#endif

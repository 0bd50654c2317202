/**
 * A pending operation: what a suspended task waits for. At most one per task. The operation's owner
 * (a stream, a store client, a timer) embeds it, fills `cancel`, and calls op_complete exactly once
 * or lets itself be cancelled; the waiter's `wake` runs from the run queue, never from inside the
 * owner's IO callback.
 */
#ifndef CROWN_LOOP_OP_H
#define CROWN_LOOP_OP_H

#include "loop/loop.h"

struct op {
    /* Set by the owner before handing the op to a waiter. */
    void (*cancel)(struct op *op); /* forget the waiter; must not complete the op; may be NULL */
    /* Set by the waiter (lua/task.c). */
    void (*wake)(struct op *op);
    void *waiter;
    /* Free for the binding that made the wait; for what it needs to push the result. */
    void *context;
    /* Internal. */
    struct loop *loop;
    struct loop_job job;
    bool pending;
};

/** Prepares an op; the owner may reuse it after completion or cancellation. */
void op_init(struct op *op, struct loop *loop, void (*cancel)(struct op *op));

/** The operation ended, well or badly (the owner keeps the result). Idempotent; queues, never
 * resumes. Completing an op nobody waits for yet is allowed: the waiter is then woken at once. */
void op_complete(struct op *op);

/** The waiter gives up: calls `cancel`, drops a queued wake. Idempotent. */
void op_cancel(struct op *op);

#endif

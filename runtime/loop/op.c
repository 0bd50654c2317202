#include "loop/op.h"
#include "base/container.h"

#include <stddef.h>

static void run(struct loop_job *job)
{
    struct op *op = container_of(job, struct op, job);
    void (*wake)(struct op * op) = op->wake;
    if (wake == NULL)
        return;
    op->wake = NULL;
    op->pending = false;
    wake(op);
}

void op_init(struct op *op, struct loop *loop, void (*cancel)(struct op *op))
{
    *op = (struct op){.cancel = cancel, .loop = loop, .job = {.run = run}, .pending = true};
}

void op_complete(struct op *op)
{
    if (!op->pending)
        return;
    loop_post(op->loop, &op->job);
}

void op_cancel(struct op *op)
{
    if (!op->pending)
        return;
    op->pending = false;
    op->wake = NULL;
    loop_unpost(op->loop, &op->job);
    if (op->cancel != NULL)
        op->cancel(op);
}

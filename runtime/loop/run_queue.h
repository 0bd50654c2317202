/**
 * The loop's jobs, turn by turn. Those that are posted run in the same turn, until one takes a
 * slice; those behind it are late. Those that gave up their turn (tasks that compute) are patient
 * from the next turn on. The late and the patient come after IO, deadlines and all that these have
 * posted, and one slice is enough for a turn.
 *
 * A slice is long on a busy host, for whoever needs several turns. So while something urgent is
 * under way, the late and the patient rest after each slice of a task that computes, for as long as
 * it took, and the loop sleeps until what is urgent goes on.
 */
#ifndef CROWN_LOOP_RUN_QUEUE_H
#define CROWN_LOOP_RUN_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "loop/loop.h"

struct run_queue {
    struct loop *loop;
    struct list jobs;
    struct list late;     /* jobs that one kept waiting which took a slice */
    struct list deferred; /* jobs for the next turn */
    struct list patient;  /* jobs of this turn that were deferred */
    bool stopped;
    bool sliced;               /* a job has taken this turn's slice */
    bool passed_over;          /* and the patient had none */
    unsigned deferrals;        /* so far */
    unsigned urgent;           /* what is under way and must be on time */
    struct loop_deadline rest; /* of the patient */
};

void run_queue_init(struct run_queue *queue, struct loop *loop);

/** Queue a job for this turn, or the next. @return false when it is queued already. */
bool run_queue_post(struct run_queue *queue, struct loop_job *job);
bool run_queue_defer(struct run_queue *queue, struct loop_job *job);

/** Runs what is posted, until its share of a turn is over. @return whether there was any. */
bool run_queue_run(struct run_queue *queue);
/** Runs what is late or patient, unless it rests; what was deferred is patient from now on. */
void run_queue_run_patient(struct run_queue *queue);

/** Asked between turns. @return whether no job waits. */
bool run_queue_empty(const struct run_queue *queue);
/** Asked at any time. @return whether any job waits, be it for a later turn. */
bool run_queue_waits(const struct run_queue *queue);
/** @return whether the loop may sleep: what waits rests. */
bool run_queue_may_sleep(const struct run_queue *queue);

#endif

#include "loop/run_queue.h"

#include "base/clock.h"
#include "base/container.h"

/* Jobs posted by jobs run in the same turn, but only so many, and so long: IO must get its turn as
 * well. */
#define JOBS_A_TURN 4096u
#define JOBS_A_TURN_NS (50 * NS_PER_MS)
#define SLICE_LEAST_NS (5 * NS_PER_MS) /* so long, and it is the only one of its turn */

static void rested(struct loop_deadline *rest)
{
    (void)rest; /* it is over: the turn that follows runs them */
}

void run_queue_init(struct run_queue *queue, struct loop *loop)
{
    *queue = (struct run_queue){.loop = loop, .rest.fire = rested};
    list_init(&queue->jobs);
    list_init(&queue->late);
    list_init(&queue->deferred);
    list_init(&queue->patient);
}

bool run_queue_post(struct run_queue *queue, struct loop_job *job)
{
    if (job->queued)
        return false;
    job->queued = true;
    list_append(&queue->jobs, &job->link);
    return true;
}

bool run_queue_defer(struct run_queue *queue, struct loop_job *job)
{
    if (job->queued)
        return false;
    job->queued = true;
    queue->deferrals++;
    list_append(&queue->deferred, &job->link);
    return true;
}

static void move_all(struct list *from, struct list *to)
{
    struct list_node *node;
    while ((node = list_first(from)) != NULL) {
        list_remove(node);
        list_append(to, node);
    }
}

/* @return whether it took a slice. The job may be gone afterwards. */
static bool run_job(struct run_queue *queue, struct loop_job *job)
{
    unsigned deferrals = queue->deferrals;
    int64_t began_ns = loop_now(queue->loop);
    loop_unpost(queue->loop, job);
    job->run(job);
    loop_progress(queue->loop);
    int64_t ended_ns = loop_now(queue->loop);
    int64_t took_ns = ended_ns - began_ns;
    if (took_ns < SLICE_LEAST_NS)
        return false;
    if (queue->deferrals != deferrals) /* it goes on as soon as it may */
        loop_at(queue->loop, &queue->rest, clock_add_ns(ended_ns, took_ns));
    return true;
}

bool run_queue_run(struct run_queue *queue)
{
    bool any = false;
    const int64_t until_ns = clock_coarse_ns() + JOBS_A_TURN_NS;
    for (unsigned i = 0; i < JOBS_A_TURN && !queue->stopped && clock_coarse_ns() < until_ns; i++) {
        struct list_node *node = list_first(&queue->jobs);
        if (node == NULL)
            break;
        any = true;
        queue->sliced = run_job(queue, container_of(node, struct loop_job, link));
        if (queue->sliced) {
            move_all(&queue->jobs, &queue->late);
            break;
        }
    }
    return any;
}

/* Of those that take a slice each no more than one. @return whether any ran. */
static bool run_slice(struct run_queue *queue, struct list *list)
{
    const int64_t until_ns = clock_coarse_ns() + SLICE_LEAST_NS;
    bool any = false;
    struct list_node *node;
    while (!queue->sliced && clock_coarse_ns() < until_ns && (node = list_first(list)) != NULL) {
        list_remove(node);
        list_append(&queue->jobs, node);
        any = run_queue_run(queue) || any;
    }
    return any;
}

/* A frozen clock moves only when all jobs have run. */
static bool resting(const struct run_queue *queue)
{
    return queue->urgent > 0 && loop_at_armed(&queue->rest) && !loop_is_virtual(queue->loop);
}

/* One slice a turn is enough, and the patient do not wait for ever behind others. */
static void run_waiting(struct run_queue *queue)
{
    bool theirs = queue->passed_over, any = false;
    if (theirs) {
        queue->sliced = false;
        any = run_slice(queue, &queue->patient);
    }
    (void)run_slice(queue, &queue->late);
    if (!theirs)
        any = run_slice(queue, &queue->patient);
    queue->passed_over = !any && !list_empty(&queue->patient);
}

void run_queue_run_patient(struct run_queue *queue)
{
    if (!resting(queue))
        run_waiting(queue);
    queue->sliced = false;
    move_all(&queue->deferred, &queue->patient);
}

bool run_queue_empty(const struct run_queue *queue)
{
    return list_empty(&queue->jobs) && list_empty(&queue->late) && list_empty(&queue->patient);
}

bool run_queue_waits(const struct run_queue *queue)
{
    return !run_queue_empty(queue) || !list_empty(&queue->deferred);
}

bool run_queue_may_sleep(const struct run_queue *queue)
{
    return !run_queue_waits(queue) || (list_empty(&queue->jobs) && resting(queue));
}

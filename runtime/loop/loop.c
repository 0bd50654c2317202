#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "loop/held.h"
#include "loop/run_queue.h"

/* Where thousands of deadlines wait, those that fall together within a few ms share a wake-up. What
 * must be on time to the millisecond is in the keepers, not here. */
#define CROWD 512u
#define CROWD_GRID_NS (5 * NS_PER_MS)

struct loop {
    struct ev_loop *ev;
    ev_io timer_watch;
    ev_prepare prepare;
    ev_check check;
    struct held *held; /* NULL: nobody wants to know */
    ev_idle idle;      /* keeps the loop from sleeping while jobs wait */
    int timer;
    struct heap deadlines;
    struct run_queue queue;
    int64_t armed_ns; /* what the timerfd is set to */
    bool virtual;
    int64_t virtual_ns;
    int64_t ahead_ns; /* how far a frozen clock had been moved on when it was let go: time never
                         goes back */
    void (*turned)(void *context);
    void *turned_context;
    void (*progressed)(void *context);
    void *progressed_context;
    void (*woken)(void *context);
    void *woken_context;
};

/* A watcher outlives its watch: the watch's owner may free it from inside its own callback. */
struct watcher {
    ev_io io;
    struct loop_watch *watch;
};

void loop_progress(const struct loop *loop)
{
    if (loop->progressed != NULL)
        loop->progressed(loop->progressed_context);
}

int64_t loop_now(const struct loop *loop)
{
    return loop->virtual ? loop->virtual_ns : clock_boottime_ns() + loop->ahead_ns;
}

int64_t loop_boottime(const struct loop *loop, int64_t at_ns)
{
    int64_t ahead_ns = loop->virtual ? loop->virtual_ns - clock_boottime_ns() : loop->ahead_ns;
    return at_ns == TIME_NEVER || at_ns == 0 ? at_ns : at_ns - ahead_ns;
}

static struct loop_deadline *of_node(struct heap_node *node)
{
    return container_of(node, struct loop_deadline, node);
}

static void arm_timer(struct loop *loop)
{
    struct heap_node *top = heap_top(&loop->deadlines);
    int64_t at_ns = top == NULL || loop->virtual ? TIME_NEVER : top->key;
    if (at_ns == loop->armed_ns)
        return;
    struct itimerspec spec = {{0, 0}, {0, 0}};
    if (at_ns != TIME_NEVER) {
        int64_t at = at_ns - loop->ahead_ns;
        if (loop->deadlines.count > CROWD)
            at = (at / CROWD_GRID_NS + 1) * CROWD_GRID_NS;
        at = at > 0 ? at : 1; /* zero would disarm */
        spec.it_value.tv_sec = at / NS_PER_S;
        spec.it_value.tv_nsec = at % NS_PER_S;
    }
    (void)timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &spec, NULL); /* arguments are right */
    loop->armed_ns = at_ns;
}

static void fire_due(struct loop *loop)
{
    int64_t now = loop_now(loop);
    struct heap_node *top;
    while ((top = heap_top(&loop->deadlines)) != NULL && top->key <= now) {
        struct loop_deadline *deadline = of_node(top);
        heap_remove(&loop->deadlines, top);
        deadline->fire(deadline);
        loop_progress(loop);
    }
}

static void timer_ready(struct ev_loop *ev, ev_io *io, int events)
{
    struct loop *loop = ev_userdata(ev);
    uint64_t fired;
    (void)io;
    (void)events;
    ssize_t ignored = read(loop->timer, &fired, sizeof(fired)); /* only so that it is quiet again */
    (void)ignored;
    loop->armed_ns = TIME_NEVER;
}

static void idle_turn(struct ev_loop *ev, ev_idle *idle, int events)
{
    (void)ev;
    (void)idle;
    (void)events;
}

/* Before the loop sleeps: deadlines, then the run queue. What they start is done before anybody
 * waits. */
static void before_wait(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    struct loop *loop = ev_userdata(ev);
    (void)prepare;
    (void)events;
    if (!loop->virtual)
        fire_due(loop);
    (void)run_queue_run(&loop->queue);
    run_queue_run_patient(&loop->queue);
    if (run_queue_empty(&loop->queue) && loop->turned != NULL)
        loop->turned(loop->turned_context);
    if (run_queue_may_sleep(&loop->queue))
        ev_idle_stop(ev, &loop->idle);
    else
        ev_idle_start(ev, &loop->idle);
    arm_timer(loop);
    held_end(loop->held);
}

static void after_wait(struct ev_loop *ev, ev_check *check, int events)
{
    const struct loop *loop = ev_userdata(ev);
    (void)check;
    (void)events;
    if (loop->woken != NULL)
        loop->woken(loop->woken_context);
    held_begin(loop->held);
}

void loop_library(int *major, int *minor)
{
    *major = ev_version_major();
    *minor = ev_version_minor();
}

struct loop *loop_new(struct crown_error *err)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    if (loop == NULL) {
        (void)error_set(err, ERROR_MEMORY, "make the event loop: out of memory");
        return NULL;
    }
    loop->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    loop->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (loop->timer < 0 || loop->ev == NULL) {
        (void)error_set_errno(err, errno, "make the event loop");
        loop_free(loop);
        return NULL;
    }
    run_queue_init(&loop->queue, loop);
    loop->armed_ns = TIME_NEVER;
    ev_set_userdata(loop->ev, loop);
    ev_io_init(&loop->timer_watch, timer_ready, loop->timer, EV_READ);
    ev_io_start(loop->ev, &loop->timer_watch);
    ev_prepare_init(&loop->prepare, before_wait);
    ev_prepare_start(loop->ev, &loop->prepare);
    ev_idle_init(&loop->idle, idle_turn);
    ev_check_init(&loop->check, after_wait);
    ev_set_priority(&loop->check, EV_MAXPRI); /* before any IO */
    loop->held = held_open();
    if (loop->held != NULL)
        ev_check_start(loop->ev, &loop->check);
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    if (loop->ev != NULL)
        ev_loop_destroy(loop->ev);
    held_close(loop->held);
    if (loop->timer >= 0)
        (void)close(loop->timer);
    heap_free(&loop->deadlines);
    free(loop);
}

void loop_run(struct loop *loop)
{
    if (!loop->queue.stopped)
        (void)ev_run(loop->ev, 0);
}

void loop_stop(struct loop *loop)
{
    loop->queue.stopped = true;
    ev_break(loop->ev, EVBREAK_ALL);
}

void loop_post(struct loop *loop, struct loop_job *job)
{
    if (run_queue_post(&loop->queue, job))
        ev_idle_start(loop->ev, &loop->idle);
}

void loop_defer(struct loop *loop, struct loop_job *job)
{
    if (run_queue_defer(&loop->queue, job))
        ev_idle_start(loop->ev, &loop->idle);
}

void loop_unpost(struct loop *loop, struct loop_job *job)
{
    (void)loop;
    if (!job->queued)
        return;
    job->queued = false;
    list_remove(&job->link);
}

void loop_urgent_begin(struct loop *loop)
{
    loop->queue.urgent++;
}

void loop_urgent_end(struct loop *loop)
{
    assert(loop->queue.urgent > 0);
    loop->queue.urgent--;
}

void loop_at(struct loop *loop, struct loop_deadline *deadline, int64_t at_ns)
{
    if (at_ns == TIME_NEVER) {
        loop_at_cancel(loop, deadline);
        return;
    }
    if (heap_set(&loop->deadlines, &deadline->node, at_ns) < 0)
        abort(); /* no memory for one pointer: crash and be restarted rather than miss a deadline */
}

void loop_at_cancel(struct loop *loop, struct loop_deadline *deadline)
{
    heap_remove(&loop->deadlines, &deadline->node);
}

bool loop_at_armed(const struct loop_deadline *deadline)
{
    return deadline->node.place != 0;
}

static void io_ready(struct ev_loop *ev, ev_io *io, int events)
{
    const struct loop *loop = ev_userdata(ev);
    struct watcher *watcher = container_of(io, struct watcher, io);
    (void)ev;
    unsigned happened = (events & EV_READ ? LOOP_READ : 0) | (events & EV_WRITE ? LOOP_WRITE : 0);
    watcher->watch->ready(watcher->watch, happened);
    loop_progress(loop);
}

void loop_watch(struct loop *loop, struct loop_watch *watch, int fd, unsigned events)
{
    struct watcher *watcher = watch->impl;
    if (events == 0) {
        loop_unwatch(watch);
        return;
    }
    if (watcher == NULL) {
        watcher = calloc(1, sizeof(*watcher));
        if (watcher == NULL)
            abort(); /* as in loop_at */
        ev_init(&watcher->io, io_ready);
        watcher->watch = watch;
        watch->impl = watcher;
    }
    watch->loop = loop;
    watch->fd = fd;
    watch->events = events;
    /* Stopped and started even when nothing seems to change: the number may stand for another
     * socket by now, and epoll has forgotten the old one. */
    ev_io_stop(loop->ev, &watcher->io);
    ev_io_set(&watcher->io, fd,
              (events & LOOP_READ ? EV_READ : 0) | (events & LOOP_WRITE ? EV_WRITE : 0));
    ev_io_start(loop->ev, &watcher->io);
}

void loop_unwatch(struct loop_watch *watch)
{
    struct watcher *watcher = watch->impl;
    if (watcher == NULL)
        return;
    ev_io_stop(watch->loop->ev, &watcher->io);
    free(watcher);
    watch->impl = NULL;
    watch->events = 0;
}

void loop_on_progress(struct loop *loop, void (*progressed)(void *context), void *context)
{
    loop->progressed = progressed;
    loop->progressed_context = context;
}

void loop_on_wake(struct loop *loop, void (*woken)(void *context), void *context)
{
    loop->woken = woken;
    loop->woken_context = context;
    ev_check_start(loop->ev, &loop->check);
}

int64_t loop_next_ns(const struct loop *loop)
{
    const struct heap_node *top = heap_top(&loop->deadlines);
    if (run_queue_waits(&loop->queue))
        return loop_now(loop);
    return top != NULL ? top->key : TIME_NEVER;
}

void loop_on_turn(struct loop *loop, void (*turned)(void *context), void *context)
{
    loop->turned = turned;
    loop->turned_context = context;
}

void loop_set_virtual(struct loop *loop, bool virtual)
{
    if (virtual && !loop->virtual)
        loop->virtual_ns = loop_now(loop);
    if (!virtual && loop->virtual && loop->virtual_ns > clock_boottime_ns())
        loop->ahead_ns = loop->virtual_ns - clock_boottime_ns();
    loop->virtual = virtual;
    loop->armed_ns = TIME_NEVER;
    arm_timer(loop);
}

bool loop_is_virtual(const struct loop *loop)
{
    return loop->virtual;
}

void loop_advance(struct loop *loop, int64_t ns)
{
    int64_t until_ns = clock_add_ns(loop->virtual_ns, ns);
    for (;;) {
        while (run_queue_run(&loop->queue) || !run_queue_empty(&loop->queue))
            run_queue_run_patient(&loop->queue);
        struct heap_node *top = heap_top(&loop->deadlines);
        if (top == NULL || top->key > until_ns)
            break;
        if (top->key > loop->virtual_ns)
            loop->virtual_ns = top->key;
        fire_due(loop);
    }
    loop->virtual_ns = until_ns;
}

/**
 * The event loop: libev behind one door. One timerfd on CLOCK_BOOTTIME and a heap serve every
 * deadline (libev's own timers count from a cached time and stand still in suspend); jobs posted
 * from IO callbacks run once per turn, so that no IO callback ever calls Lua.
 * Single-threaded; made with ev_loop_new, since the default loop reaps other people's children.
 */
#ifndef CROWN_LOOP_LOOP_H
#define CROWN_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/list.h"

struct loop;

/** Work for the run queue. Embed it; it may be posted again after `run` was entered. */
struct loop_job {
    void (*run)(struct loop_job *job);
    struct list_node link;
    bool queued;
};

/** An absolute instant on CLOCK_BOOTTIME. Embed it; zero-initialise before first use. */
struct loop_deadline {
    void (*fire)(struct loop_deadline *deadline); /* called from the loop, not from the run queue */
    struct heap_node node;                        /* its key is the instant */
};

#define LOOP_READ 1u
#define LOOP_WRITE 2u

/** A descriptor to watch. Embed it; zero-initialise before first use; stop before closing the fd.
 */
struct loop_watch {
    void (*ready)(struct loop_watch *watch, unsigned events); /* LOOP_READ | LOOP_WRITE */
    struct loop *loop;
    int fd;
    unsigned events;
    void *impl; /* the libev watcher, owned by the loop while the watch is active */
};

/** Fills in the version of libev that is loaded. */
void loop_library(int *major, int *minor);

/** @return a loop, or NULL with `err`. */
struct loop *loop_new(struct crown_error *err);
void loop_free(struct loop *loop);

/** Runs until loop_stop. Each turn: IO and deadlines, then the run queue until it is empty once. */
void loop_run(struct loop *loop);
/** Ends loop_run for good; jobs that wait are not run any more. */
void loop_stop(struct loop *loop);

/** Queues a job for this turn; a job that is queued already stays where it is. */
void loop_post(struct loop *loop, struct loop_job *job);
/** Queues a job for the next turn, after IO, deadlines, and the jobs that those queue. */
void loop_defer(struct loop *loop, struct loop_job *job);
void loop_unpost(struct loop *loop, struct loop_job *job);

/** Between the two, what gives up its turn gets at most every other moment, so that what is urgent
 * does not wait for a slice at each of its steps. They may overlap. */
void loop_urgent_begin(struct loop *loop);
void loop_urgent_end(struct loop *loop);

/** Arms, or moves, a deadline; TIME_NEVER disarms. O(log n). */
void loop_at(struct loop *loop, struct loop_deadline *deadline, int64_t at_ns);
void loop_at_cancel(struct loop *loop, struct loop_deadline *deadline);
bool loop_at_armed(const struct loop_deadline *deadline);

/** Starts, or changes, watching `watch->fd` for `events`; 0 stops. Re-registers with the kernel
 * even when the number is the same: libpq closes and reopens a socket under one number. */
void loop_watch(struct loop *loop, struct loop_watch *watch, int fd, unsigned events);
void loop_unwatch(struct loop_watch *watch);

/** @return now on the loop's clock: CLOCK_BOOTTIME, or the virtual one. */
int64_t loop_now(const struct loop *loop);

/** @return the instant on CLOCK_BOOTTIME for one on the loop's clock: what other processes and
 * kernel timers are told. */
int64_t loop_boottime(const struct loop *loop, int64_t at_ns);

/** For deterministic tests: freezes the loop's clock where it is; deadlines then fire in
 * loop_advance alone. */
void loop_set_virtual(struct loop *loop, bool virtual);

bool loop_is_virtual(const struct loop *loop);

/** Moves the virtual clock on by `ns`, firing what falls due in order and draining the run queue
 * each time. */
void loop_advance(struct loop *loop, int64_t ns);

/** Called after each job, deadline and descriptor that was served: the host's heartbeat hangs here.
 */
void loop_on_progress(struct loop *loop, void (*progressed)(void *context), void *context);
/** The same said by a job that does many things in one go, after each of them. */
void loop_progress(const struct loop *loop);

/** Called when the loop has waited, before what has come is served. */
void loop_on_wake(struct loop *loop, void (*woken)(void *context), void *context);
/** @return the next deadline; now, where a job waits; TIME_NEVER where nothing is to be done before
 * something comes. */
int64_t loop_next_ns(const struct loop *loop);

/** Called after each turn that emptied the run queue. */
void loop_on_turn(struct loop *loop, void (*turned)(void *context), void *context);

#endif

#include "base/sink_disk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own_table.h"
#include "base/sink.h"

#define PATIENCE_NS (100 * NS_PER_MS)
#define END_PATIENCE_NS NS_PER_S
#define STACK_BYTES 65536u

/* What one half of the lines takes in while the thread writes the other. */
struct half {
    char text[SINK_DISK_WAITING_MOST];
    size_t length, wrote;
};

static struct {
    pid_t owner; /* whose thread it is: a fork has none */
    pthread_mutex_t mutex;
    pthread_cond_t asked, done;
    struct half halves[2];
    struct half *filled, *written; /* by the caller; by the thread */
    bool asks;                     /* since the thread has looked */
    bool stuck;                    /* the last try wrote nothing */
} disk;

static bool all_written(void)
{
    return disk.written->wrote == disk.written->length && disk.filled->length == 0;
}

/* What the other half holds is next when all of this one is written. */
static void turn_over(void)
{
    struct half *half = disk.written;
    if (half->wrote < half->length)
        return;
    half->wrote = half->length = 0;
    disk.written = disk.filled;
    disk.filled = half;
}

/* The functions of pthread fail for misuse only, where it is not said otherwise. */
static void *write_lines(void *unused)
{
    (void)unused;
    (void)own_table_take(-1); /* where there is none, it has what its process has */
    (void)pthread_mutex_lock(&disk.mutex);
    for (;;) {
        while (!disk.asks)
            (void)pthread_cond_wait(&disk.asked, &disk.mutex);
        turn_over();
        struct half *half = disk.written;
        (void)pthread_mutex_unlock(&disk.mutex);
        ssize_t wrote = /* no signal comes here */
            write(STDERR_FILENO, half->text + half->wrote, half->length - half->wrote);
        (void)pthread_mutex_lock(&disk.mutex);
        disk.stuck = wrote <= 0;
        half->wrote += disk.stuck ? 0 : (size_t)wrote;
        disk.asks = !disk.stuck && !all_written(); /* a full disk is tried again at the next line */
        (void)pthread_cond_signal(&disk.done);
    }
    return NULL;
}

/* @return 0, or -1 where there is no thread to be had. */
static int start(void)
{
    pthread_condattr_t clock;
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    for (int i = 0; i < 2; i++)
        disk.halves[i].length = disk.halves[i].wrote = 0;
    disk.filled = &disk.halves[0];
    disk.written = &disk.halves[1];
    disk.asks = disk.stuck = false;
    (void)pthread_mutex_init(&disk.mutex, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&disk.asked, NULL);
    (void)pthread_cond_init(&disk.done, &clock);
    (void)pthread_condattr_destroy(&clock);
    if (pthread_attr_init(&attributes) != 0)
        return -1;
    (void)sigfillset(&all);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(&thread, &attributes, write_lines, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (problem != 0)
        return -1;
    disk.owner = getpid();
    return 0;
}

/* Has the thread write, until all is written or cannot be. */
static void let_write(int64_t patience_ns)
{
    int64_t at_ns = clock_monotonic_ns() + patience_ns;
    const struct timespec until = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
    disk.stuck = false;
    disk.asks = true;
    (void)pthread_cond_signal(&disk.asked);
    while (!all_written() && !disk.stuck &&
           pthread_cond_timedwait(&disk.done, &disk.mutex, &until) == 0)
        ;
}

static void at_exit(void)
{
    if (disk.owner != getpid())
        return;
    (void)pthread_mutex_lock(&disk.mutex);
    if (!all_written())
        let_write(END_PATIENCE_NS);
    (void)pthread_mutex_unlock(&disk.mutex);
}

/* @return false where there is no thread to be had. */
static bool ready(void)
{
    static bool registered; /* forks have it, too */
    if (disk.owner == getpid())
        return true;
    if (start() < 0)
        return false;
    registered = registered || atexit(at_exit) == 0;
    return true;
}

/* Whoever comes while others wait is not held up, too: the disk may hang. */
static void take_in(const char *bytes, size_t length)
{
    bool first = all_written();
    memcpy(disk.filled->text + disk.filled->length, bytes, length);
    disk.filled->length += length;
    let_write(first ? PATIENCE_NS : 0);
}

ssize_t sink_disk_write(const char *bytes, size_t length)
{
    if (!ready())
        return write(STDERR_FILENO, bytes, length);
    ssize_t taken = -1;
    (void)pthread_mutex_lock(&disk.mutex);
    if (length <= sizeof(disk.filled->text) - disk.filled->length) {
        take_in(bytes, length);
        taken = (ssize_t)length;
    } else
        errno = EAGAIN;
    (void)pthread_mutex_unlock(&disk.mutex);
    return taken;
}

#include "base/sink_disk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own_table.h"
#include "base/sink.h"

#define PATIENCE_NS (100 * NS_PER_MS)
#define STACK_BYTES 65536u

static struct {
    pid_t owner; /* whose thread it is: a fork has none */
    pthread_mutex_t mutex;
    pthread_cond_t asked, done;
    char text[SINK_LINE_MOST];
    size_t length;
    bool busy;
    ssize_t wrote;
    int problem; /* errno */
} disk;

/* The functions of pthread fail for misuse only, where it is not said otherwise. */
static void *write_lines(void *unused)
{
    (void)unused;
    (void)own_table_take(-1); /* where there is none, it has what its process has */
    (void)pthread_mutex_lock(&disk.mutex);
    for (;;) {
        while (!disk.busy)
            (void)pthread_cond_wait(&disk.asked, &disk.mutex);
        (void)pthread_mutex_unlock(&disk.mutex);
        ssize_t wrote = write(STDERR_FILENO, disk.text, disk.length); /* no signal comes here */
        int problem = errno;
        (void)pthread_mutex_lock(&disk.mutex);
        disk.wrote = wrote;
        disk.problem = problem;
        disk.busy = false;
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
    disk.busy = false;
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

static struct timespec patience_over(void)
{
    int64_t at_ns = clock_monotonic_ns() + PATIENCE_NS;
    return (struct timespec){.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
}

/* @return what was written; what still waits for the disk counts as written. */
static ssize_t hand_over(const char *bytes, size_t length)
{
    const struct timespec until = patience_over();
    memcpy(disk.text, bytes, length);
    disk.length = length;
    disk.busy = true;
    (void)pthread_cond_signal(&disk.asked);
    while (disk.busy && pthread_cond_timedwait(&disk.done, &disk.mutex, &until) == 0)
        ;
    if (disk.busy)
        return (ssize_t)length;
    errno = disk.problem;
    return disk.wrote;
}

ssize_t sink_disk_write(const char *bytes, size_t length)
{
    if (disk.owner != getpid() && start() < 0)
        return write(STDERR_FILENO, bytes, length);
    ssize_t taken = -1;
    (void)pthread_mutex_lock(&disk.mutex);
    if (!disk.busy)
        taken = hand_over(bytes, length);
    else
        errno = EAGAIN;
    (void)pthread_mutex_unlock(&disk.mutex);
    return taken;
}

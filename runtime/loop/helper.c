#include "loop/helper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/list.h"
#include "base/own_table.h"

/* Whoever changes it from RUNNING decides who frees: after FINISHED the loop, after ABANDONED the
 * thread. */
enum { RUNNING, FINISHED, ABANDONED };

struct helper {
    struct list_node link; /* in `left_behind` */
    const struct helper_kind *kind;
    char *cause;
    void *work, *context;
    atomic_int state;
    struct loop_watch watch; /* of our end of the pair: readable when the thread is done */
    int thread_end;          /* the thread's: readable when nobody waits any more */
    bool apart;              /* the thread has a table of its own, and `thread_end` is in both */
};

/* Those that were given up or told to hurry, and run on. Guarded, with `apart`: one that was given
 * up leaves it on its own thread. */
static struct list left_behind = {{&left_behind.head, &left_behind.head}};
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* Where the thread has a table of its own, the process has a copy of its end. */
static void close_copy(const struct helper *helper)
{
    if (helper->apart)
        (void)close(helper->thread_end);
}

/* A mutex of this kind fails for misuse only.
 * @return whether the thread frees it. */
static bool leave_behind(struct helper *helper)
{
    int running = RUNNING;
    (void)pthread_mutex_lock(&guard);
    close_copy(helper);
    bool left = atomic_compare_exchange_strong(&helper->state, &running, ABANDONED);
    if (left)
        list_append(&left_behind, &helper->link);
    (void)pthread_mutex_unlock(&guard);
    return left;
}

static int count_left_behind(const char *cause)
{
    int count = 0;
    (void)pthread_mutex_lock(&guard);
    list_each(node, &left_behind) count +=
        strcmp(container_of(node, struct helper, link)->cause, cause) == 0;
    (void)pthread_mutex_unlock(&guard);
    return count;
}

static void helper_free(struct helper *helper)
{
    (void)pthread_mutex_lock(&guard);
    list_remove(&helper->link);
    (void)pthread_mutex_unlock(&guard);
    free(helper->cause);
    free(helper);
}

/* @param end the thread's, which has another number in a table of its own.
 * @return whether anybody still waits. */
static bool begin(struct helper *helper, int *end)
{
    (void)pthread_mutex_lock(&guard);
    bool wanted = atomic_load(&helper->state) == RUNNING;
    int taken = wanted && helper->kind->own_table ? own_table_take(helper->thread_end) : -1;
    helper->apart = taken >= 0;
    if (helper->apart)
        *end = taken;
    (void)pthread_mutex_unlock(&guard);
    return wanted;
}

static void *run(void *argument)
{
    struct helper *helper = argument;
    int running = RUNNING;
    int end = helper->thread_end;
    (void)prctl(PR_SET_NAME, helper->kind->name); /* for `ps` only */
    if (begin(helper, &end))
        helper->kind->run(helper->work, end);
    if (!atomic_compare_exchange_strong(&helper->state, &running, FINISHED)) {
        helper->kind->drop(helper->work);
        helper_free(helper);
    }
    /* After FINISHED it tells the loop, which may have freed `helper` by now. */
    (void)shutdown(end, SHUT_RDWR); /* though the process has a copy */
    (void)close(end);
    return NULL;
}

static void finished(struct loop_watch *watch, unsigned events)
{
    struct helper *helper = container_of(watch, struct helper, watch);
    const struct helper_kind *kind = helper->kind;
    void *work = helper->work, *context = helper->context;
    int fd = watch->fd;
    (void)events;
    loop_unwatch(watch);
    (void)close(fd); /* nothing was ever written */
    close_copy(helper);
    helper_free(helper);
    kind->done(context, work);
}

/* No signal is for a helper: the guard of Lua's time slices, for one, means the loop's thread. */
static int start_thread(struct helper *helper)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    int problem = pthread_attr_init(&attributes);
    if (problem != 0)
        return problem;
    (void)sigfillset(&all); /* these have no way to fail */
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    problem = pthread_create(&thread, &attributes, run, helper);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return problem;
}

struct helper *helper_start(struct loop *loop, const struct helper_kind *kind, const char *cause,
                            void *work, void *context, struct crown_error *err)
{
    int ends[2];
    if (count_left_behind(cause) >= HELPERS_ABANDONED_MAX) {
        (void)error_set(err, ERROR_SYSTEM,
                        "%s: %d threads are still busy with %s, though they were given up",
                        kind->name, HELPERS_ABANDONED_MAX, cause);
        return NULL;
    }
    struct helper *helper = calloc(1, sizeof(*helper));
    if (helper == NULL || (helper->cause = strdup(cause)) == NULL) {
        free(helper);
        (void)error_set(err, ERROR_MEMORY, "%s: out of memory", kind->name);
        return NULL;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        (void)error_set_errno(err, errno, "%s: start a thread", kind->name);
        helper_free(helper);
        return NULL;
    }
    helper->kind = kind;
    helper->work = work;
    helper->context = context;
    helper->thread_end = ends[1];
    helper->watch.ready = finished;
    loop_watch(loop, &helper->watch, ends[0], LOOP_READ);
    int problem = start_thread(helper);
    if (problem == 0)
        return helper;
    (void)error_set(err, ERROR_SYSTEM, "%s: start a thread: %s", kind->name,
                    error_of_start(problem));
    loop_unwatch(&helper->watch);
    (void)close(ends[0]);
    (void)close(ends[1]);
    helper_free(helper);
    return NULL;
}

bool helper_finish(struct helper *helper, int milliseconds)
{
    if (helper == NULL)
        return true;
    struct pollfd end = {.fd = helper->watch.fd, .events = POLLIN};
    bool ended = poll(&end, 1, milliseconds) > 0;
    if (ended)
        finished(&helper->watch, LOOP_READ);
    else
        helper_abandon(helper);
    return ended;
}

void helper_hurry(struct helper *helper)
{
    (void)pthread_mutex_lock(&guard);
    list_append(&left_behind, &helper->link);
    (void)pthread_mutex_unlock(&guard);
    (void)shutdown(helper->watch.fd, SHUT_WR); /* the thread may have ended: nothing to hurry */
}

void helper_abandon(struct helper *helper)
{
    if (helper == NULL)
        return;
    int fd = helper->watch.fd;
    loop_unwatch(&helper->watch); /* while it is ours */
    if (!leave_behind(helper)) {  /* it had finished */
        helper->kind->drop(helper->work);
        helper_free(helper);
    }
    (void)close(fd); /* tells the thread */
}

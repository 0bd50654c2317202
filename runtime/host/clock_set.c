#include "host/clock_set.h"

#include <errno.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "candidate/candidate.h"

#define FAR_S ((time_t)1 << 33) /* the year 2242; the kernel's end of time is 2262 */

static void tell_one(struct candidate *candidate, void *context)
{
    (void)context;
    candidate_clock_set(candidate);
}

static void tell(struct loop_deadline *due)
{
    struct clock_set *clock_set = container_of(due, struct clock_set, due);
    struct candidate_env *env = clock_set->env;
    clock_set->told_ns = loop_now(env->loop);
    if (env->stopping)
        return; /* what is held is released */
    if (candidates_visiting(
            env->candidates)) { /* the last ones are not told yet of the time before */
        loop_at(env->loop, due, clock_add_ns(clock_set->told_ns, NS_PER_S));
        return;
    }
    log_info("the wall clock was set: every lease is refreshed now");
    candidates_visit(env->candidates, env->loop, tell_one, NULL);
}

/* Each time gives up the refreshes under way. Where the clock is set again and again, the store has
 * to have time to answer one, or no lease would last. */
static void tell_soon(struct clock_set *clock_set)
{
    if (!loop_at_armed(&clock_set->due))
        loop_at(clock_set->env->loop, &clock_set->due, clock_add_ns(clock_set->told_ns, NS_PER_S));
}

/* A timer that never goes off, and is cancelled when the clock is set: timerfd_create(2). */
static int arm(int fd)
{
    const struct itimerspec never = {.it_value = {.tv_sec = FAR_S}};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

static void was_set(struct loop_watch *watch, unsigned events)
{
    struct clock_set *clock_set = container_of(watch, struct clock_set, watch);
    uint64_t times;
    (void)events;
    bool cancelled = read(watch->fd, &times, sizeof(times)) < 0 && errno == ECANCELED;
    if (cancelled)
        tell_soon(clock_set);
    if (!cancelled || (arm(watch->fd) < 0 && errno != ECANCELED))
        clock_set_end(clock_set);
}

void clock_set_begin(struct clock_set *clock_set, struct candidate_env *env)
{
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    *clock_set = (struct clock_set){
        .env = env,
        .watch = {.ready = was_set, .fd = -1},
        .due = {.fire = tell},
    };
    if (fd < 0)
        return;
    if (arm(fd) < 0) {
        (void)close(fd); /* nothing was written to it */
        return;
    }
    loop_watch(env->loop, &clock_set->watch, fd, LOOP_READ);
}

void clock_set_end(struct clock_set *clock_set)
{
    int fd = clock_set->watch.fd;
    if (clock_set->env == NULL)
        return;
    loop_at_cancel(clock_set->env->loop, &clock_set->due);
    loop_unwatch(&clock_set->watch);
    if (fd >= 0)
        (void)close(fd); /* nothing was written to it */
    clock_set->env = NULL;
}

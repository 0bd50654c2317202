#include "child/child.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "process/process_stat.h"

/* After kill_at a keeper has so many looks, two seconds in all, for its tree to be gone. */
#define LOOK_NS (NS_PER_S / 4)
#define LOOKS 8

void child_let_go(struct child *child)
{
    if (!child->active)
        return;
    loop_at_cancel(child->children->loop, &child->late);
    loop_unwatch(&child->watch);
    keeper_link_close(&child->member.keeper);
    list_remove(&child->member.node);
    child->active = false;
}

static void child_gone(struct child *child, const struct wire_message *message)
{
    child_let_go(child);
    child->event(child, message);
}

/* SIGKILL is not refused, and does not end it: it waits in the kernel, for a disk most likely, or
 * a debugger has asked to see its end. */
static struct wire_message hanging(const struct child *child)
{
    struct wire_message message = {.type = WIRE_UNKILLABLE, .pid = child->pid};
    bool waits = process_stat(child->pid).state == 'D';
    pid_t tracer = process_tracer(child->pid);
    (void)snprintf(message.text, sizeof(message.text), "%s",
                   waits ? "it hangs in the kernel (state D)"
                         : "SIGKILL has not ended all of its tree");
    if (tracer != 0)
        (void)snprintf(message.text, sizeof(message.text),
                       "process %d, which traces it as a debugger does, holds it", (int)tracer);
    return message;
}

static void look_later(struct child *child, int64_t from_ns)
{
    loop_at(child->children->loop, &child->late, clock_add_ns(from_ns, LOOK_NS));
}

/* While the supervisor is stopped it ends no tree, and tells of none that is gone: what is not
 * heard then is no fault of the tree's. */
static bool supervisor_is_stopped(struct child *child)
{
    pid_t supervisor = getppid();
    char state = process_stat(supervisor).state;
    bool stopped = state == 'T' || state == 't';
    if (stopped && !child->told_of_stop)
        log_warn("the supervisor (process %d) is stopped: children do not end before it goes on "
                 "(kill -CONT %d)",
                 (int)supervisor, (int)supervisor);
    child->told_of_stop = stopped;
    return stopped;
}

/* Or somebody keeps the keeper stopped. A lease ends by the keeper's timer then; but a lock has no
 * deadline, and who waits for its release would wait for ever. */
static void overdue(struct loop_deadline *late)
{
    struct child *child = container_of(late, struct child, late);
    const struct wire_message keeper_late = {.type = WIRE_END_KEEPER};
    const struct wire_message message = child->killed ? hanging(child) : keeper_late;
    struct crown_error err;
    child->looks = supervisor_is_stopped(child) ? 0 : child->looks + 1;
    if (child->looks < LOOKS) {
        look_later(child, loop_now(child->children->loop));
        return;
    }
    /* It may be stopped in the middle of killing, too; one that is dead already does not mind. */
    if (link_end_keeper(child->children->link, child->member.keeper.id, &err) < 0)
        log_debug("tell the supervisor of a late keeper: %s", err.message);
    child->event(child, &message);
}

/* A keeper goes by the real time. */
static void await_gone(struct child *child, int64_t kill_at_ns)
{
    if (loop_is_virtual(child->children->loop))
        return;
    child->late.fire = overdue;
    child->looks = 0;
    look_later(child, kill_at_ns);
}

static void was_killed(struct child *child)
{
    if (!child->killed)
        await_gone(child, loop_now(child->children->loop));
    child->killed = true;
}

static void child_ready(struct loop_watch *watch, unsigned events)
{
    struct child *child = container_of(watch, struct child, watch);
    (void)events;
    for (;;) {
        struct wire_message message;
        struct crown_error err = {0};
        int received = keeper_link_receive(&child->member.keeper, &message, &err);
        if (received == 0)
            return;
        if (received < 0) {
            was_killed(child);
            /* The keeper was killed. Its tree is not known to be gone until the supervisor, which
             * adopts what is left of it, says so with KEEPER_FAILED. */
            loop_unwatch(&child->watch);
            return;
        }
        if (message.type == WIRE_KILLED || message.type == WIRE_EXITED)
            was_killed(child);
        if (message.type == WIRE_UNKILLABLE)
            loop_at_cancel(child->children->loop, &child->late); /* another one could do no more */
        if (message.type == WIRE_GONE) {
            child_gone(child, &message);
            return;
        }
        if (message.type == WIRE_STARTED)
            child->pid = message.pid;
        child->event(child, &message);
    }
}

static void keeper_failed(struct children_member *member, const struct wire_message *message)
{
    struct child *child = container_of(member, struct child, member);
    struct wire_message gone = *message;
    gone.type = WIRE_GONE;
    if (message->error != 0) {
        /* No keeper could be forked at all. */
        struct wire_message failed = *message;
        failed.type = WIRE_START_FAILED;
        child->event(child, &failed);
    } else {
        gone.status = SIGKILL;
        (void)snprintf(
            gone.text, sizeof(gone.text),
            "its keeper (crown-keeper) was killed, or stood still until its time was up");
    }
    child_gone(child, &gone);
}

int child_start(struct child *child, struct children *children, const struct child_spec *spec,
                struct crown_error *err)
{
    child->children = children;
    child->pid = 0;
    child->killed = false;
    if (link_start_child(children->link, spec, &child->member.keeper, err) < 0)
        return -1;
    child->active = true;
    child->member.keeper_failed = keeper_failed;
    list_append(&children->list, &child->member.node);
    child->watch.ready = child_ready;
    loop_watch(children->loop, &child->watch, child->member.keeper.fd, LOOP_READ);
    return 0;
}

static bool has_keeper(const struct child *child)
{
    return child->active && child->member.keeper.fd >= 0;
}

void child_set_deadline(struct child *child, int64_t stop_at_ns, int64_t kill_at_ns,
                        int64_t deadline_ns)
{
    struct crown_error err;
    const struct loop *loop = child->children->loop;
    if (has_keeper(child) &&
        keeper_link_set_deadline(&child->member.keeper, loop_boottime(loop, stop_at_ns),
                                 loop_boottime(loop, kill_at_ns), loop_boottime(loop, deadline_ns),
                                 &err) < 0)
        log_debug("tell the keeper its deadline: %s", err.message);
}

void child_stop(struct child *child, int64_t kill_at_ns)
{
    struct crown_error err;
    if (has_keeper(child) && !child->killed)
        await_gone(child, kill_at_ns);
    if (has_keeper(child) &&
        keeper_link_stop(&child->member.keeper, loop_boottime(child->children->loop, kill_at_ns),
                         &err) < 0)
        log_debug("tell the keeper to stop: %s", err.message);
}

const char *child_unkillable_reason(const struct wire_message *message)
{
    return message->text[0] != '\0' ? message->text : strerror(message->error);
}

void child_signal(struct child *child, int signal)
{
    struct crown_error err;
    if (has_keeper(child) && keeper_link_signal(&child->member.keeper, signal, &err) < 0)
        log_debug("tell the keeper to signal: %s", err.message);
}

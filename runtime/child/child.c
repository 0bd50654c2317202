#include "child/child.h"

#include <signal.h>

#include "base/container.h"
#include "base/log.h"
#include "host/host.h"

static void process_gone(struct process *process, const struct wire_message *message)
{
    loop_unwatch(&process->watch);
    keeper_link_close(&process->keeper);
    list_remove(&process->link);
    process->active = false;
    process->event(process, message);
}

static void process_ready(struct loop_watch *watch, unsigned events)
{
    struct process *process = container_of(watch, struct process, watch);
    (void)events;
    for (;;) {
        struct wire_message message;
        struct crown_error err = {0};
        int received = keeper_link_receive(&process->keeper, &message, &err);
        if (received == 0)
            return;
        if (received < 0) {
            /* The keeper was killed. Its tree is not known to be gone until the supervisor, which
             * adopts what is left of it, says so with KEEPER_FAILED. */
            loop_unwatch(&process->watch);
            return;
        }
        if (message.type == WIRE_GONE) {
            process_gone(process, &message);
            return;
        }
        if (message.type == WIRE_STARTED)
            process->pid = message.pid;
        process->event(process, &message);
    }
}

int process_start(struct process *process, struct host *host, const struct child_spec *spec,
                  struct crown_error *err)
{
    process->host = host;
    process->pid = 0;
    if (link_start_child(host_link(host), spec, &process->keeper, err) < 0)
        return -1;
    process->active = true;
    list_append(host_processes(host), &process->link);
    process->watch.ready = process_ready;
    loop_watch(host_loop(host), &process->watch, process->keeper.fd, LOOP_READ);
    return 0;
}

void process_set_deadline(struct process *process, int64_t stop_at_ns, int64_t kill_at_ns,
                          int64_t deadline_ns)
{
    struct crown_error err;
    if (process->active && process->keeper.fd >= 0 &&
        keeper_link_set_deadline(&process->keeper, stop_at_ns, kill_at_ns, deadline_ns, &err) < 0)
        log_debug("tell the keeper its deadline: %s", err.message);
}

void process_stop(struct process *process, int64_t kill_at_ns)
{
    struct crown_error err;
    if (process->active && process->keeper.fd >= 0 &&
        keeper_link_stop(&process->keeper, kill_at_ns, &err) < 0)
        log_debug("tell the keeper to stop: %s", err.message);
}

void process_signal(struct process *process, int signal)
{
    struct crown_error err;
    if (process->active && process->keeper.fd >= 0 &&
        keeper_link_signal(&process->keeper, signal, &err) < 0)
        log_debug("tell the keeper to signal: %s", err.message);
}

bool process_keeper_failed(struct host *host, const struct wire_message *message)
{
    list_each(node, host_processes(host))
    {
        struct process *process = container_of(node, struct process, link);
        if (process->keeper.id != message->id)
            continue;
        struct wire_message gone = *message;
        gone.type = WIRE_GONE;
        if (message->error != 0) {
            /* No keeper could be forked at all. */
            struct wire_message failed = *message;
            failed.type = WIRE_START_FAILED;
            process->event(process, &failed);
        } else {
            gone.status = SIGKILL;
        }
        process_gone(process, &gone);
        return true;
    }
    return false;
}

/**
 * A process under a keeper, as the runtime sees it: a leader's or follower's child, or a command of
 * crown.exec. Starts it, watches the keeper's line on the loop, and reports what the keeper says.
 */
#ifndef CROWN_CHILD_CHILD_H
#define CROWN_CHILD_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"
#include "process/child_spec.h"
#include "process/link.h"

struct host;
struct process;

/**
 * Called for STARTED, START_FAILED, EXITED, KILLED and GONE, in the keeper's order. GONE is always
 * the last, also when the keeper itself was killed: then it comes when the supervisor has killed
 * what was left. After it the process may be started again, or freed, by the callee.
 */
typedef void process_event(struct process *process, const struct wire_message *message);

/** Embed it; zero-initialise before first use. */
struct process {
    process_event *event;
    struct host *host;
    struct keeper_link keeper;
    struct loop_watch watch;
    struct list_node link; /* among the host's processes */
    pid_t pid;             /* 0 until STARTED */
    bool active;           /* from process_start until GONE */
};

/**
 * Starts a command under a keeper of its own.
 * @param spec may be freed after the call; its descriptors stay the caller's.
 * @return 0, or -1 with `err`: then no event follows.
 */
int process_start(struct process *process, struct host *host, const struct child_spec *spec,
                  struct crown_error *err);

/** New instants for stop signal, SIGKILL and deadline. Errors mean the keeper is gone, and GONE
 * follows. */
void process_set_deadline(struct process *process, int64_t stop_at_ns, int64_t kill_at_ns,
                          int64_t deadline_ns);
/** Stop signal now, SIGKILL to the tree at `kill_at_ns`. */
void process_stop(struct process *process, int64_t kill_at_ns);
void process_signal(struct process *process, int signal);

/** For the host: what the supervisor said of keeper `id`. @return false when no process has it. */
bool process_keeper_failed(struct host *host, const struct wire_message *message);

#endif

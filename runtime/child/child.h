/**
 * A process under a keeper, as the runtime sees it: a leader's or follower's command, or one of
 * crown.exec. Starts it, watches the keeper's line on the loop, and reports what the keeper says.
 */
#ifndef CROWN_CHILD_CHILD_H
#define CROWN_CHILD_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "child/children.h"
#include "loop/loop.h"
#include "process/child_spec.h"

struct child;

/**
 * Called for STARTED, START_FAILED, SIGNALLED, EXITED, KILLED, UNKILLABLE and GONE, in the keeper's
 * order. GONE is always the last, also when the keeper itself was killed: then it comes when the
 * supervisor has killed what was left. After it the child may be started again, or freed, by the
 * callee. Two come from here: END_KEEPER when a keeper is killed that was late; UNKILLABLE, with
 * `text` instead of `error`, when a tree that was sent SIGKILL does not end.
 */
typedef void child_event(struct child *child, const struct wire_message *message);

/** Embed it; zero-initialise before first use. */
struct child {
    child_event *event;
    struct children *children;
    struct children_member member;
    struct loop_watch watch;
    struct loop_deadline late; /* when it is looked whether its tree, which should be, is gone */
    unsigned looks;            /* in a row, at which it was not, nor the supervisor stopped */
    bool told_of_stop;         /* that the supervisor is stopped, since it is */
    bool killed;               /* the tree was sent SIGKILL, or is, since its keeper is dead */
    pid_t pid;                 /* 0 until STARTED */
    bool active;               /* from child_start until GONE */
};

/**
 * Starts a command under a keeper of its own.
 * @param spec may be freed after the call; its descriptors stay the caller's.
 * @return 0, or -1 with `err`: then no event follows.
 */
int child_start(struct child *child, struct children *children, const struct child_spec *spec,
                struct crown_error *err);

/** New instants for stop signal, SIGKILL and deadline. Errors mean the keeper is gone, and GONE
 * follows. */
void child_set_deadline(struct child *child, int64_t stop_at_ns, int64_t kill_at_ns,
                        int64_t deadline_ns);
/** Stop signal now, SIGKILL to the tree at `kill_at_ns`. A keeper that is not done two seconds
 * later is killed itself. */
void child_stop(struct child *child, int64_t kill_at_ns);
void child_signal(struct child *child, int signal);

/** @return why a tree cannot be killed, as UNKILLABLE says it. */
const char *child_unkillable_reason(const struct wire_message *message);

/** Hears no more of it, without a GONE: for when the whole runtime goes down, and its keepers kill.
 */
void child_let_go(struct child *child);

#endif

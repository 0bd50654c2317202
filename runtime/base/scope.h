/**
 * What one owner has started: tasks, commands, watches, listeners, subscriptions. It ends together,
 * and the owner hears when the last of it is gone. A scope serves once and is never opened again; a
 * new term has a new one.
 *
 * Owner and members share its memory: it goes when the owner has let go (scope_free) and the last
 * member has left, in whichever order.
 */
#ifndef CROWN_BASE_SCOPE_H
#define CROWN_BASE_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

struct scope;
struct scope_member;

/** Until when the processes of a scope may run; each may be TIME_NEVER. */
struct scope_instants {
    int64_t stop_at_ns;  /* the stop signal */
    int64_t kill_at_ns;  /* SIGKILL to the tree */
    int64_t deadline_ns; /* nothing runs past it: kernel timers see to that */
};

#define SCOPE_NO_INSTANTS                                                                          \
    ((struct scope_instants){                                                                      \
        .stop_at_ns = TIME_NEVER, .kill_at_ns = TIME_NEVER, .deadline_ns = TIME_NEVER})

#define SCOPE_HOLDS 3

/** Descriptors that every process of a scope keeps open, such as a lock. */
struct scope_hold {
    int fds[SCOPE_HOLDS]; /* -1: none */
};

#define SCOPE_NO_HOLD ((struct scope_hold){.fds = {-1, -1, -1}})

/** What a kind of member does when its scope wants something of it. */
struct scope_kind {
    const char *name; /* for messages: "task", "child", "exec", "watch", "listener" … */
    /** Begin to end; scope_leave once it is gone, now or later. Called once for each close. */
    void (*end)(struct scope_member *member);
    /** NULL: it lives in this process, whose own dead-man timer sees to it. */
    void (*set_instants)(struct scope_member *member, const struct scope_instants *instants);
};

/** Embed it; zero-initialise before first use. */
struct scope_member {
    const struct scope_kind *kind;
    struct scope *scope; /* NULL while in none */
    struct list_node link;
};

/** What the owner hears; each may be NULL. Both may close and free any scope, this one too. */
struct scope_owner {
    /** The last member that lives in this process has left. Only members start others, so that
     * nothing else will run here until the owner itself enters something. */
    void (*quiet)(void *context);
    /** Once after scope_close, as soon as no member is left; from scope_close itself where there is
     * none. The last that is heard. */
    void (*empty)(void *context);
    /** Every process that is started in it has to be a member, since none may outlive it. */
    bool owns_processes;
};

/** @return a scope without instants, or NULL when memory is out. */
struct scope *scope_new(const struct scope_owner *owner, void *context);

/** The owner lets go: closes the scope where that was not done, and does not want to hear of it any
 * more. */
void scope_free(struct scope *scope);

/** @return false when the scope is closed: then the member is in none. */
bool scope_enter(struct scope *scope, struct scope_member *member, const struct scope_kind *kind);

/** The member is gone. Harmless for one that is in no scope. The last thing to do: `empty` may
 * follow. */
void scope_leave(struct scope_member *member);

/** From its scope into another one; where that is closed, the member is told to end. */
void scope_move(struct scope_member *member, struct scope *scope);

/** New instants, for the members there are and for those that come. */
void scope_set_instants(struct scope *scope, const struct scope_instants *instants);
const struct scope_instants *scope_instants(const struct scope *scope);

/** Not owned. */
void scope_set_hold(struct scope *scope, const struct scope_hold *hold);
const struct scope_hold *scope_hold(const struct scope *scope);

/** Takes no new members and tells those that are there to end. Once; later calls do nothing. */
void scope_close(struct scope *scope);
bool scope_closed(const struct scope *scope);
/** @return whether it has no members. */
bool scope_is_empty(const struct scope *scope);

bool scope_owns_processes(const struct scope *scope);

/** @return whether it has members that live in this process. */
bool scope_runs_here(const struct scope *scope);

#endif

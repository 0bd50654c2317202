/**
 * What to run and how: argv, environment, ids, standard streams, isolation. Built by the runtime,
 * sent to the keeper as one flat block in a sealed memfd, so that the keeper parses nothing that
 * can be wrong after the checks of child_spec_read.
 */
#ifndef CROWN_PROCESS_CHILD_SPEC_H
#define CROWN_PROCESS_CHILD_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/scope.h"

enum child_isolation {
    CHILD_ISOLATION_TREE,  /* subreaper and kill rounds: the child sees the host's process ids */
    CHILD_ISOLATION_PIDNS, /* a PID namespace of its own; refused where the kernel does not allow it
                            */
};

enum child_stdio {
    CHILD_STDIO_INHERIT, /* the supervisor's own */
    CHILD_STDIO_NULL,
    CHILD_STDIO_FD, /* a descriptor sent along: a pipe to the log or to crown.exec, or an open file
                     */
};

#define CHILD_MAX_HOLD 4 /* descriptors kept open by keeper, warden and child: they hold a lock */

struct child_spec {
    char *const *argv; /* argv[0] is looked up on PATH unless it has a slash */
    char *const *envp; /* the whole environment */
    const char *cwd;   /* NULL: the supervisor's */
    const char *label; /* the election's name: for `ps` */
    bool set_ids;      /* change to uid, gid and groups */
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t group_count;
    enum child_stdio stdio[3]; /* stdin, stdout, stderr */
    int stdio_fd[3];           /* where CHILD_STDIO_FD */
    int hold_fd[CHILD_MAX_HOLD];
    unsigned hold_count;
    int stop_signal;
    int lease_signal; /* signal mode: sent at stop_at instead of a stop; 0: a term's end is a stop
                       */
    bool terminal;    /* take the terminal's foreground, as a shell's child does */
    bool ctrl_c_ends; /* with it: what a terminal interrupts is the whole program, not this child
                         alone */
    bool escalate;    /* --terminate: INT, a second later TERM, then SIGKILL */
    enum child_isolation isolation;
    int64_t stop_at_ns, kill_at_ns, deadline_ns; /* as SET_DEADLINE; TIME_NEVER: none */
    void *memory;                                /* where child_spec_read puts what is pointed at */
    size_t memory_size;
};

/** What else the child's tree keeps open. */
void child_spec_hold(struct child_spec *spec, const struct scope_hold *hold);

/** Writes the spec to a sealed memfd. @return the descriptor, or -1 with `err` (too large: 2 MiB).
 */
int child_spec_write(const struct child_spec *spec, struct crown_error *err);

/**
 * Reads and checks a block, in a keeper or a warden. Descriptors (stdio_fd, hold_fd) become indexes
 * into the descriptors that came along, in that order.
 * @return 0, or -1 with ERROR_PROTOCOL or ERROR_SYSTEM; then there is nothing to release.
 */
int child_spec_read(int memfd, struct child_spec *spec, struct crown_error *err);

/** Gives back what a spec that was read points at, once the child has started: a keeper and a
 * warden live for as long as it does. The numbers stay. */
void child_spec_release(struct child_spec *spec);

#endif

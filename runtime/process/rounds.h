/**
 * Kills a whole tree: SIGKILL to every descendant of this process, round after round until none is
 * left. The caller must be a child subreaper, so that descendants which daemonize stay its
 * descendants (prctl(2)).
 */
#ifndef CROWN_PROCESS_ROUNDS_H
#define CROWN_PROCESS_ROUNDS_H

#include <sys/types.h>

/** A process that SIGKILL was refused for, though it is there: it lives on as another user. */
struct rounds_refused {
    pid_t pid; /* 0: none */
    int error; /* EPERM, as a rule: kill(2) */
};

/**
 * One round: SIGKILL to every process below this one, as far as /proc shows them now.
 * @param last a child that kills what is below it when this process dies: killed when it has no
 * children any more, and awakened until then. 0: there is none.
 * @return who refused, or nobody.
 */
struct rounds_refused rounds_kill_once(pid_t last);

/**
 * Kills and reaps until this process has no child left, however long that takes. One that is dead,
 * and that a debugger keeps from being reaped, is not waited for.
 * @param last as rounds_kill_once has it.
 * @param refused called once, when a process that may not be killed is met; may be NULL.
 */
void rounds_kill_all(pid_t last, void (*refused)(void *context, const struct rounds_refused *who),
                     void *context);

/** A process, and a descriptor that stands for it and for no other that has its number later. */
struct rounds_process {
    pid_t pid;
    int pidfd; /* -1 where the kernel has none: pidfd_open(2) */
};

/** Of a round: SIGKILL to all below `parent`, unless it is gone and its number another's. */
struct rounds_refused rounds_kill_below(const struct rounds_process *parent);
/** The same for one child, as a list that is a moment old has it: and it itself, unless it is no
 * child of `parent`, nor of this process, by now. */
struct rounds_refused rounds_kill_child(const struct rounds_process *parent, pid_t pid);

#endif

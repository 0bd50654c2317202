/**
 * Finds the supervisor's dead children. The kernel looks through all children for one that has
 * died: with ten thousand of them that takes longer than a death. So one that a signal names is
 * asked for by its id, and the others, whose signals were one with it, are looked for only so
 * often.
 */
#ifndef CROWN_PROCESS_REAPING_H
#define CROWN_PROCESS_REAPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Zero-initialise it. */
struct reaping {
    bool due;        /* there may be some */
    int64_t look_ns; /* not before */
};

/** SIGCHLD came. @param pid whom it names. @return as reaping_next. */
pid_t reaping_heed(struct reaping *reaping, pid_t pid, int *status);
/** @param count how many children there are, about. @return one that has died, with its status as
 * waitpid(2) gives it; 0: none now. */
pid_t reaping_next(struct reaping *reaping, unsigned count, int *status);
/** @return when reaping_next is to be called again; TIME_NEVER: after the next SIGCHLD. */
int64_t reaping_at_ns(const struct reaping *reaping);

#endif

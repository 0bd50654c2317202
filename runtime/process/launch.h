/**
 * Forks the runtime and keepers, out of the supervisor.
 */
#ifndef CROWN_PROCESS_LAUNCH_H
#define CROWN_PROCESS_LAUNCH_H

#include <sys/types.h>

#include "process/keepers.h"
#include "process/supervisor.h"
#include "process/wire.h"

/**
 * @param keepers what is left of the last runtime's: the next one holds none of their locks.
 * @param journal_fd what runtimes hand on to each other; stays open.
 * @param signals_fd the supervisor's, of no use to the runtime.
 * @param line the supervisor's end of the line to it.
 * @return its pid, or -1 with `err`.
 */
pid_t launch_runtime(const struct supervisor_config *config, const struct keepers *keepers,
                     int journal_fd, int signals_fd, int *line, struct crown_error *err);

/** The first that a runtime hears. @param held what the last one was silent over, or "". */
void launch_greet(int line, const struct wire_message *hello, const char *held);

/** A keeper that is ready, with its warden, and waits for a child. It ends when its line closes. On
 * the table of keepers from the start. */
struct launch_spare {
    pid_t pid; /* 0: none */
    int line;
};

/** There is none any more: it has died, or is to end. */
void launch_forget(struct launch_spare *spare);

/**
 * Does what the runtime asks for: a keeper that is ready, one that gets a child (or it is noted
 * that this failed), the end of one. Call keepers_full first.
 * @param message of any type. @param fds what came with it.
 * @return how many of the descriptors are still the caller's, the first ones.
 */
unsigned launch_asked(struct keepers *keepers, struct launch_spare *spare,
                      const struct wire_message *message, const int *fds, unsigned nfds);

#endif

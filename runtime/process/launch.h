/**
 * Forks the runtime and keepers, out of the supervisor.
 */
#ifndef CROWN_PROCESS_LAUNCH_H
#define CROWN_PROCESS_LAUNCH_H

#include <sys/types.h>

#include "process/keepers.h"
#include "process/supervisor.h"
#include "process/will.h"
#include "process/wire.h"

/**
 * @param journal_fd what runtimes hand on to each other; stays open.
 * @param signals_fd the supervisor's, of no use to the runtime. @param wills the same.
 * @param line the supervisor's end of the line to it.
 * @return its pid, or -1 with `err`.
 */
pid_t launch_runtime(const struct supervisor_config *config, int journal_fd, int signals_fd,
                     struct wills *wills, int *line, struct crown_error *err);

/** A keeper that is ready, with its warden, and waits for a child. It ends when its line closes. On
 * the table of keepers from the start. */
struct launch_spare {
    pid_t pid; /* 0: none */
    int line;
};

/** Makes one ready, where there is none. */
void launch_prepare(struct keepers *keepers, struct launch_spare *spare);
/** There is none any more: it has died, or is to end. */
void launch_forget(struct launch_spare *spare);

/**
 * Gives a child to the keeper that is ready, or forks one, or notes that this failed. Call
 * keepers_full first.
 * @param message START_KEEPER. @param fds what came with it.
 * @return how many of the descriptors are still the caller's, the first ones.
 */
unsigned launch_keeper(struct keepers *keepers, struct launch_spare *spare,
                       const struct wire_message *message, const int *fds, unsigned nfds);

#endif

/**
 * Forks the runtime, out of the supervisor.
 */
#ifndef CROWN_PROCESS_LAUNCH_H
#define CROWN_PROCESS_LAUNCH_H

#include <sys/types.h>

#include "process/supervisor.h"

/**
 * @param journal_fd what runtimes hand on to each other; stays open.
 * @param signals_fd the supervisor's, of no use to the runtime.
 * @param line the supervisor's end of the line to it.
 * @return its pid, or -1 with `err`.
 */
pid_t launch_runtime(const struct supervisor_config *config, int journal_fd, int signals_fd,
                     int *line, struct crown_error *err);

#endif

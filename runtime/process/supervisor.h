/**
 * The first process: no Lua, no network, never blocks, allocates nothing after start. Forks the
 * runtime and the keepers it asks for, restarts a runtime that died or fell silent (its trees
 * killed first, the same token handed on), passes signals, reaps (also as PID 1), and exits as the
 * runtime did.
 */
#ifndef CROWN_PROCESS_SUPERVISOR_H
#define CROWN_PROCESS_SUPERVISOR_H

#include <stdint.h>

#include "base/error.h"

struct supervisor_config {
    int64_t heartbeat_timeout_ns; /* 0: never restart for silence */
    /* Runs the runtime in the forked process; its result is the exit code. */
    int (*run_runtime)(int supervisor_fd, int journal_fd, void *context);
    void *context;
    const char *title; /* what `ps` shows behind the process name; no secret in it */
};

/** @return the exit code for main: the last runtime's own, 128 + the signal that ended it, or 1
 * where nothing could be set up. */
int supervisor_run(const struct supervisor_config *config);

#endif

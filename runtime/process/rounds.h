/**
 * Kills a whole tree: SIGKILL to every descendant of this process, round after round until none is
 * left. The caller must be a child subreaper, so that descendants which daemonize stay its
 * descendants (prctl(2)).
 */
#ifndef CROWN_PROCESS_ROUNDS_H
#define CROWN_PROCESS_ROUNDS_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * One round: SIGKILL to every process below this one, as far as /proc shows them now.
 * @param spare is not killed, nor is anything below it; 0: nobody is spared.
 * @return how many were signalled.
 */
unsigned rounds_kill_once(pid_t spare);

/**
 * Kills and reaps until this process has no child left.
 * @param reaped called for each child reaped, may be NULL.
 */
void rounds_kill_all(void (*reaped)(pid_t pid, int status, void *context), void *context);

/** Sends `signal` to every descendant once. */
void rounds_signal(int signal);

#endif

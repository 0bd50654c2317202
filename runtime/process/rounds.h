/**
 * Kills a whole tree: SIGKILL to every descendant of this process, round after round until none is
 * left. The caller must be a child subreaper, so that descendants which daemonize stay its
 * descendants (prctl(2)).
 */
#ifndef CROWN_PROCESS_ROUNDS_H
#define CROWN_PROCESS_ROUNDS_H

/** One round: SIGKILL to every process below this one, as far as /proc shows them now. */
void rounds_kill_once(void);

/** Kills and reaps until this process has no child left. */
void rounds_kill_all(void);

#endif

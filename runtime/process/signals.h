/**
 * The signals that a keeper and a warden act on, as a descriptor to poll.
 */
#ifndef CROWN_PROCESS_SIGNALS_H
#define CROWN_PROCESS_SIGNALS_H

/** Blocks every signal, and reads SIGCHLD and SIGTERM from the descriptor. @return it, or -1 with
 * errno. */
int signals_open(void);

#endif

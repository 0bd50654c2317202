/**
 * Restartable sequences: where the C library asks for them, the kernel writes down on which
 * processor a thread runs, each time that it was interrupted.
 */
#ifndef CROWN_PROCESS_RSEQ_H
#define CROWN_PROCESS_RSEQ_H

/** Has the kernel write nothing for this thread, nor for what is forked from it: in each keeper and
 * warden that would be a page of its own. Nothing here asks for the processor. */
void rseq_leave(void);

#endif

/**
 * As fork(2), without what the C library does around it: nobody's locks are held here, and what it
 * writes to its own data would be 16 KiB of copies in each of thousands of keepers and wardens.
 */
#ifndef CROWN_PROCESS_PLAIN_FORK_H
#define CROWN_PROCESS_PLAIN_FORK_H

#include <sys/types.h>

/**
 * @param flags more of clone(2), such as a namespace's; 0: none.
 * @param note gets the new process's pid before that runs, also when this one is killed in between;
 * NULL: nothing does.
 * @return as fork.
 */
pid_t plain_fork(unsigned long flags, pid_t *note);

#endif

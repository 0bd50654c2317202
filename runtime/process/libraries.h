/**
 * Libraries that only the runtime calls. A keeper and a warden without them are forked and end in
 * less time: the kernel copies and unlinks each part of a library that is mapped.
 */
#ifndef CROWN_PROCESS_LIBRARIES_H
#define CROWN_PROCESS_LIBRARIES_H

#include <stdbool.h>

/** Whether processes that are forked from now on have them, as they do at first. One that does not
 * must not call them, nor execute destructors: it ends by _exit(2). */
void libraries_hand_on(bool all);

#endif

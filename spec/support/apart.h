/** Runs what never returns, as a process does, on a stack of its own, and returns whenever it
 * waits. So a test can be the kernel of a process, and the clock stands still meanwhile. */
#ifndef CROWN_SPEC_APART_H
#define CROWN_SPEC_APART_H

#include <stdbool.h>

/** Runs it until it waits or ends. One at a time. */
void apart_begin(void (*run)(void));

/** It goes on until it waits again or ends. Does nothing when it has ended. */
void apart_go_on(void);

/** Called where it would wait: back to the test. */
void apart_wait(void);

/** Called where it would end. */
void apart_end(void) __attribute__((noreturn));

/** @return whether it has ended, or none was begun. */
bool apart_has_ended(void);

/** Gives its stack back, wherever it stands. */
void apart_close(void);

#endif

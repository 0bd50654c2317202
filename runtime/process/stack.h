/**
 * The pages of the stack that a process has used once and needs no more.
 */
#ifndef CROWN_PROCESS_STACK_H
#define CROWN_PROCESS_STACK_H

/**
 * Gives back the pages below the caller's. What a start took of the stack (texts, descriptors) a
 * keeper and a warden would else keep for as long as their child lives, thousands of times.
 */
void stack_release(void);

#endif

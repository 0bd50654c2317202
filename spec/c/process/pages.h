/**
 * Which pages of this process's memory a forked one has.
 */
#ifndef CROWN_SPEC_PAGES_H
#define CROWN_SPEC_PAGES_H

#include <stdbool.h>

/** @return whether this process has the page that something lies in. */
bool pages_has(const void *what);
/** @return whether one that it forks has it. */
bool pages_child_has(const void *what);
/** qemu's user mode says yes to MADV_DONTFORK, and copies all the same. */
bool pages_can_be_left_out(void);

#endif

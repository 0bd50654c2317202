/**
 * The calls of the kernel that a process makes, one after the other, as a debugger sees them.
 */
#ifndef CROWN_SPEC_TRACED_H
#define CROWN_SPEC_TRACED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What a traced process exits with where this cannot be tried. */
#define TRACED_CANNOT 77

/** Of a process that a test forks: lets its parent trace it from here on. Exits with TRACED_CANNOT
 * where that is not allowed, as under qemu. */
void traced_begin(void);

/**
 * In its parent: until it has ended.
 * @param heard called before each call of the kernel, with its number.
 * @return its status, as waitpid(2) has it.
 */
int traced_run(pid_t pid, void (*heard)(pid_t pid, uint64_t number));

/**
 * The same with a process that runs, which is held while something happens.
 * @return whether that is allowed.
 */
bool traced_seize(pid_t pid, void (*meanwhile)(void), void (*heard)(pid_t pid, uint64_t number));

#endif

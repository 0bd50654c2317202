/**
 * Has the kernel refuse calls, as older ones and strict containers do.
 */
#ifndef CROWN_SPEC_PROCESS_DENIED_H
#define CROWN_SPEC_PROCESS_DENIED_H

#include <stdbool.h>

/**
 * From now on a system call fails in this process and in those that it makes.
 * @param number of the call, SYS_…
 * @param error that it fails with
 * @return whether that can be had here
 */
bool deny_call(int number, int error);

#endif

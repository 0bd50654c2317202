/**
 * Finds what belongs to a process id as fast among ten thousand as among ten. Mapped once, touched
 * as it fills.
 */
#ifndef CROWN_PROCESS_PID_INDEX_H
#define CROWN_PROCESS_PID_INDEX_H

#include <sys/types.h>

#define PID_INDEX_MOST (1u << 17) /* ids at a time */
#define PID_INDEX_NONE (~0u)

struct pid_index {
    struct pid_index_slot *slots;
};

/** Forked processes do not have it. @return 0, or -1 with errno. */
int pid_index_init(struct pid_index *index);
/** @param pid above 0. @param value takes the place of another one. */
void pid_index_set(struct pid_index *index, pid_t pid, unsigned value);
/** @return its value, or PID_INDEX_NONE. */
unsigned pid_index_find(const struct pid_index *index, pid_t pid);
/** Nothing where it is not there. */
void pid_index_remove(struct pid_index *index, pid_t pid);

#endif

/**
 * What /proc says of a process: /proc/PID/stat, see proc(5).
 */
#ifndef CROWN_PROCESS_PROCESS_STAT_H
#define CROWN_PROCESS_PROCESS_STAT_H

#include <stdbool.h>
#include <sys/types.h>

struct process_stat {
    char state;   /* as ps(1) shows it: R runs or waits for a processor, S sleeps, D for a disk, T
                     stopped; '?' when it is gone */
    pid_t parent; /* 0 when it is gone */
};

/** Allocates nothing. @return what is known; of one that is gone, or hidden, nothing. */
struct process_stat process_stat(pid_t pid);

/** Of one whose number cannot be another's by now, such as a child of this process. Allocates
 * nothing.
 * @return whether none of its threads runs any more (Z or X). Such a process may be there all the
 * same: a debugger that traces it keeps it from its parent for as long as it likes. */
bool process_is_dead(pid_t pid);

/** @return the process that traces this one, as a debugger does; 0 where there is none, or nobody
 * can say. */
pid_t process_tracer(pid_t pid);

/** @return how a dead process ended, as waitpid(2) has it; -1 where that is not to be known. */
int process_status(pid_t pid);

/** Without /proc nobody could end a tree. It has to be that of this PID namespace: in one of a
 * namespace above, the same numbers are others'. And it has to tell whose child a process is:
 * kernels without CONFIG_PROC_CHILDREN do not.
 * @return what it does not let this process do, for a reason in errno, or NULL. */
const char *process_stat_refused(void);

/** Of one that has no threads. A dead child counts until it is reaped. @return also true where
 * nobody can say. */
bool process_has_children(pid_t pid);

/** Reads a file of /proc to its end: it gives a page at a time, which 700 children fill. @return
 * how many bytes, at most `size`; -1 with errno. */
ssize_t process_read(const char *path, char *text, size_t size);

#endif

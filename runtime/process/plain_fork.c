#include "process/plain_fork.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The raw call with no stack behaves like fork: clone(2). */
pid_t plain_fork(unsigned long flags, pid_t *note)
{
    if (note != NULL)
        flags |= CLONE_PARENT_SETTID;
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, note, NULL, NULL);
}

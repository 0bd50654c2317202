#include "process/features.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/pidns.h"
#include "process/realtime.h"

bool features_pidfd(void)
{
    int fd = pidfd_open(getpid(), 0);
    if (fd < 0)
        return false;
    bool takes_signals = pidfd_send_signal(fd, 0, NULL, 0) == 0;
    (void)close(fd);
    return takes_signals;
}

bool features_locked_memory(void)
{
    if (!realtime_lock_memory())
        return false;
    (void)munlockall(); /* cannot fail where the lock did not */
    return true;
}

bool features_pid_namespaces(void)
{
    struct crown_error err;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int status = 0;
    /* The raw call with no stack behaves like fork: clone(2). */
    pid_t pid = (pid_t)syscall(SYS_clone, pidns_flags() | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(pidns_enter(uid, gid, &err) < 0 ? 1 : 0);
    if (pid < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

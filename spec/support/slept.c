#include "slept.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080 /* linux/sched.h, which cannot be had beside sched.h */
#endif

static bool set_offset(int64_t seconds)
{
    char text[40];
    int size = snprintf(text, sizeof(text), "boottime %lld 0", (long long)seconds);
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    bool set = fd >= 0 && write(fd, text, (size_t)size) == size;
    if (fd >= 0)
        (void)close(fd);
    return set;
}

bool slept_for(int64_t seconds)
{
    if (unshare(CLONE_NEWTIME) < 0 || !set_offset(seconds))
        return false;
    int fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    bool entered = fd >= 0 && setns(fd, CLONE_NEWTIME) == 0;
    if (fd >= 0)
        (void)close(fd);
    return entered;
}

#include "process/pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

unsigned long pidns_flags(void)
{
    /* same (number): SIGCHLD, which each caller adds, has that bit already */
    return CLONE_NEWPID | CLONE_NEWNS | (geteuid() != 0 ? CLONE_NEWUSER : 0);
}

static int write_file(const char *path, const char *text, struct crown_error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "isolation 'pidns': open %s", path);
    ssize_t wrote = write(fd, text, strlen(text));
    int saved = errno;
    (void)close(fd);
    return wrote < 0 ? error_set_errno(err, saved, "isolation 'pidns': write %s", path) : 0;
}

int pidns_enter(uid_t uid, gid_t gid, struct crown_error *err)
{
    if (uid != 0) {
        char map[64];
        /* setgroups must be given up before the group map may be written: user_namespaces(7). */
        if (write_file("/proc/self/setgroups", "deny", err) < 0)
            return -1;
        (void)snprintf(map, sizeof(map), "%u %u 1\n", (unsigned)uid, (unsigned)uid);
        if (write_file("/proc/self/uid_map", map, err) < 0)
            return -1;
        (void)snprintf(map, sizeof(map), "%u %u 1\n", (unsigned)gid, (unsigned)gid);
        if (write_file("/proc/self/gid_map", map, err) < 0)
            return -1;
    }
    /* Nothing that is mounted here may show outside. In a chroot "/" is no mount point; then
     * /proc's own will do. */
    if ((mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 &&
         mount("none", "/proc", NULL, MS_REC | MS_PRIVATE, NULL) < 0) ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return error_set_errno(err, errno, "isolation 'pidns': mount a private /proc");
    return 0;
}

pid_t pidns_host_pid(pid_t first, pid_t seen)
{
    char path[64], list[32] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)first, (int)first);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return seen;
    ssize_t size = read(fd, list, sizeof(list) - 1); /* same (term): a number is shorter */
    (void)close(fd);                                 /* read only */
    /* same (swap): of an empty list strtol makes 0 */
    long pid = size > 0 ? strtol(list, NULL, 10) : 0;
    return pid > 0 ? (pid_t)pid : seen;
}

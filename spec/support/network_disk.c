/* Preloaded into a program, it has every file lie on NFS. */
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int statfs(const char *path, struct statfs *system)
{
    long result = syscall(SYS_statfs, path, system);
    if (result == 0)
        system->f_type = NFS_SUPER_MAGIC;
    return (int)result;
}

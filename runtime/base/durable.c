#include "base/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int open_temporary(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags, 0644);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0644);
    return fd;
}

/* Closes it, in any case. @return 0, or -1 with errno. */
static int fill(int fd, const char *text, size_t size)
{
    ssize_t written = pwrite(fd, text, size, 0);
    if (written >= 0 && written != (ssize_t)size)
        errno = ENOSPC;
    bool fine = written == (ssize_t)size && ftruncate(fd, (off_t)size) == 0 && fdatasync(fd) == 0;
    int saved = errno;
    if (close(fd) < 0 && fine)
        return -1;
    errno = saved;
    return fine ? 0 : -1;
}

int durable_replace(const char *path, const char *text, size_t size, struct crown_error *err)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof(temporary), "%s.%d.new", path, (int)getpid()) >=
        (int)sizeof(temporary))
        return error_set_errno(err, ENAMETOOLONG, "write %s", path);
    int fd = open_temporary(temporary);
    if (fd < 0)
        return error_set_errno(err, errno, "write %s", temporary);
    if (fill(fd, text, size) == 0 && rename(temporary, path) == 0)
        return 0;
    (void)error_set_errno(err, errno, "write %s", path);
    (void)unlink(temporary); /* the write's error is what counts */
    return -1;
}

void durable_number(const struct stat *info, char number[DURABLE_NUMBER_SIZE])
{
    (void)snprintf(number, DURABLE_NUMBER_SIZE, "%02x:%02x:%lu", major(info->st_dev),
                   minor(info->st_dev), (unsigned long)info->st_ino);
}

int durable_write(const char *path, const char *number, const char *text, size_t size,
                  struct crown_error *err)
{
    char found[DURABLE_NUMBER_SIZE];
    struct stat info;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &info) < 0) {
        (void)error_set_errno(err, errno, "write %s", path);
        if (fd >= 0)
            (void)close(fd); /* nothing was written */
        return -1;
    }
    durable_number(&info, found);
    if (strcmp(found, number) != 0) {
        (void)close(fd); /* nothing was written */
        return error_set(err, ERROR_SYSTEM, "%s is another file by now", path);
    }
    return fill(fd, text, size) == 0 ? 0 : error_set_errno(err, errno, "write %s", path);
}

/* Who may open a lock can keep everybody from leading: its owner alone, or those who share a
 * group's directory. The umask has no say. */
static mode_t mode_beside(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat info;
    (void)snprintf(directory, sizeof(directory), "%.*s",
                   slash == NULL ? 1 : (int)(slash - path + 1), slash == NULL ? "." : path);
    return stat(directory, &info) == 0 && (info.st_mode & S_IWGRP) != 0 ? 0660 : 0600;
}

int durable_create(const char *path, struct crown_error *err)
{
    const mode_t mode = mode_beside(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno == EEXIST ? 0 : error_set_errno(err, errno, "make %s", path);
    int result = fchmod(fd, mode);
    if (result < 0)
        (void)error_set_errno(err, errno, "set the mode of %s", path);
    (void)close(fd); /* it is empty */
    return result;
}

int durable_remove(const char *path, struct crown_error *err)
{
    return unlink(path) == 0 || errno == ENOENT ? 0
                                                : error_set_errno(err, errno, "remove %s", path);
}

int durable_touch(const char *path, struct crown_error *err)
{
    return utimensat(AT_FDCWD, path, NULL, 0) == 0 ? 0
                                                   : error_set_errno(err, errno, "touch %s", path);
}

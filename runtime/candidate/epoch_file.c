#include "candidate/epoch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static bool write_beside(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return false;
    size_t length = strlen(text);
    errno = ENOSPC; /* where a part was written */
    bool written = write(fd, text, length) == (ssize_t)length;
    int saved = errno;
    bool closed = close(fd) == 0;
    if (!written)
        errno = saved;
    return written && closed;
}

/* "~": no election's name has it, while there may be one that ends in ".new". */
static int replace(const char *path, const char *text, struct crown_error *err)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof(beside), "%s~", path) >= (int)sizeof(beside))
        errno = ENAMETOOLONG;
    else if (write_beside(beside, text) && rename(beside, path) == 0)
        return 0;
    return error_set_errno(err, errno, "write the epoch to %s", path);
}

int epoch_file_write(const char *path, uint64_t epoch, struct crown_error *err)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRIu64 "\n", epoch);
    return path == NULL ? 0 : replace(path, text, err);
}

void epoch_file_clear(const char *path)
{
    struct crown_error err;
    if (path != NULL && replace(path, "", &err) < 0)
        log_warn("%s", err.message);
}

void epoch_file_remove(const char *path)
{
    if (path != NULL && unlink(path) < 0 && errno != ENOENT)
        log_warn("remove %s: %s", path, strerror(errno)); // NOLINT(concurrency-mt-unsafe)
}

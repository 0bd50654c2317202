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
    bool written = write(fd, text, length) == (ssize_t)length;
    return close(fd) == 0 && written;
}

void epoch_file_write(const char *path, uint64_t epoch)
{
    char text[32] = "", beside[PATH_MAX];
    if (path == NULL)
        return;
    if (epoch != 0)
        (void)snprintf(text, sizeof(text), "%" PRIu64 "\n", epoch);
    if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
        errno = ENAMETOOLONG;
    else if (write_beside(beside, text) && rename(beside, path) == 0)
        return;
    log_warn("write the epoch to %s: %s", path, strerror(errno)); // NOLINT(concurrency-mt-unsafe)
}

void epoch_file_remove(const char *path)
{
    if (path != NULL && unlink(path) < 0 && errno != ENOENT)
        log_warn("remove %s: %s", path, strerror(errno)); // NOLINT(concurrency-mt-unsafe)
}

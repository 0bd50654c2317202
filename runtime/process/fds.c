#include "process/fds.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP_MAX 32

int fds_open_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    return fd < 0 ? -1 : close(fd);
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void fds_close_except(const int *keep, unsigned count)
{
    int sorted[KEEP_MAX] = {0};
    unsigned first = 3;
    assert(count <= KEEP_MAX);
    if (count > 0)
        memcpy(sorted, keep, count * sizeof(*keep));
    qsort(sorted, count, sizeof(*sorted), compare);
    for (unsigned i = 0; i < count; i++) {
        if (sorted[i] < (int)first)
            continue;
        if ((unsigned)sorted[i] > first)
            (void)close_range(first, (unsigned)sorted[i] - 1, 0);
        first = (unsigned)sorted[i] + 1;
    }
    (void)close_range(first, ~0u, 0); /* fails for wrong arguments only */
}

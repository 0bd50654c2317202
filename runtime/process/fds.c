#include "process/fds.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEEP_MAX 32

static bool output_was_missing;

bool fds_output_was_missing(void)
{
    return output_was_missing;
}

int fds_open_standard(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        output_was_missing = output_was_missing || fd == STDOUT_FILENO;
    } while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    return fd < 0 ? -1 : close(fd); /* the one too many */
}

static void close_one(int fd, bool at_exec)
{
    if (at_exec)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* fails for what is not open */
    else
        (void)close(fd); /* nothing to lose */
}

/* Where no descriptor is left to look into a folder, the limit says how many there are. */
static void close_below_limit(unsigned first, unsigned last, bool at_exec)
{
    struct rlimit limit = {.rlim_cur = 0};  /* same (number): it is set below */
    (void)getrlimit(RLIMIT_NOFILE, &limit); /* arguments are right */
    for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++)
        close_one((int)fd, at_exec);
}

static void close_one_by_one(unsigned first, unsigned last, bool at_exec)
{
    DIR *open_ones = opendir("/proc/self/fd");
    if (open_ones == NULL) {
        close_below_limit(first, last, at_exec);
        return;
    }
    for (struct dirent *one = readdir(open_ones); one != NULL; one = readdir(open_ones)) {
        char *end = NULL;
        unsigned long fd = strtoul(one->d_name, &end, 10);
        if (*end == '\0' && fd >= first && fd <= last && (int)fd != dirfd(open_ones))
            close_one((int)fd, at_exec);
    }
    (void)closedir(open_ones); /* read only */
}

/* Linux before 5.9 has no close_range, before 5.11 none that waits for the exec, and some
 * containers refuse it. */
static void close_all(unsigned first, unsigned last, bool at_exec)
{
    if (close_range(first, last, at_exec ? CLOSE_RANGE_CLOEXEC : 0) < 0)
        close_one_by_one(first, last, at_exec);
}

void fds_close_at_exec(void)
{
    close_all(3, ~0u, true);
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
        if ((unsigned)sorted[i] > first) /* same (swap): what is empty is left alone */
            close_all(first, (unsigned)sorted[i] - 1, false);
        first = (unsigned)sorted[i] + 1;
    }
    close_all(first, ~0u, false);
}

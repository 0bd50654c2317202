#include "host/leader_file.h"

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define TEXT_MAX 8192
#define BOOT_ID_SIZE 36
#define MAX_AGE_DEFAULT 60.0

enum { PRESENT = 0, ABSENT = 1, USAGE = 2 };

static int usage(const char *problem)
{
    (void)fprintf(stderr,
                  "crown-lua: file --check: %s: crown-lua file --check FILE [--max-age SECONDS]\n",
                  problem);
    return USAGE;
}

static size_t read_text(int fd, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got;
    while (length + 1 < size && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    return length;
}

/* What stands behind "key": in one flat object; inside a string the quotes would be escaped. */
static const char *find_value(const char *text, const char *key)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    const char *found = strstr(text, quoted);
    return found != NULL ? found + strlen(quoted) : NULL;
}

static double wall_clock(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return INFINITY;
    return (double)now.tv_sec + (double)now.tv_nsec / (double)NS_PER_S;
}

/* Whether the file was written since this host's last start: then its own clock, which nobody sets,
 * counts. */
static bool is_of_this_boot(const char *text)
{
    char now[BOOT_ID_SIZE + 2];
    const char *then = find_value(text, "boot_id");
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t length = read_text(fd, now, sizeof(now));
    (void)close(fd); /* read only */
    return then != NULL && length >= BOOT_ID_SIZE && *then == '"' &&
           strncmp(then + 1, now, BOOT_ID_SIZE) == 0;
}

static enum freshness judge(bool fresh)
{
    return fresh ? FILE_FRESH : FILE_STALE;
}

static enum freshness freshness_of(const char *text, const struct stat *found, double max_age)
{
    const char *expires_at = find_value(text, "expires_at");
    const char *boottime = find_value(text, "expires_at_boottime");
    if (boottime != NULL && is_of_this_boot(text))
        return judge(clock_seconds_from_ns(clock_boottime_ns()) < strtod(boottime, NULL));
    if (expires_at != NULL)
        return judge(boottime == NULL && wall_clock() < strtod(expires_at, NULL));
    if (find_value(text, "timestamp") == NULL || find_value(text, "count") == NULL)
        return FILE_FOREIGN;
    double age = wall_clock() - (double)found->st_mtim.tv_sec;
    return judge(age >= 0 && age <= max_age);
}

enum freshness fresh_file(const char *path, double max_age)
{
    char text[TEXT_MAX];
    struct stat found;
    enum freshness fresh = FILE_STALE;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return FILE_STALE;
    if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode)) {
        fresh = FILE_FOREIGN;
    } else {
        (void)read_text(fd, text, sizeof(text));
        fresh = freshness_of(text, &found, max_age);
    }
    (void)close(fd); /* read only */
    return fresh;
}

static bool read_seconds(const char *text, double *seconds)
{
    char *end = NULL;
    *seconds = strtod(text, &end);
    return end != text && end != NULL && *end == '\0' && *seconds >= 0;
}

int fresh_main(int argc, char **argv)
{
    const char *path = NULL;
    double max_age = MAX_AGE_DEFAULT;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        if (strncmp(word, "--max-age=", 10) == 0)
            value = word + 10;
        else if (strcmp(word, "--max-age") == 0)
            value = i + 1 < argc ? argv[++i] : "";
        if (value != NULL && !read_seconds(value, &max_age))
            return usage("--max-age: seconds expected");
        if (value != NULL)
            continue;
        if (word[0] == '-' || path != NULL)
            return usage("one FILE expected");
        path = word;
    }
    if (path == NULL)
        return usage("name a FILE");
    enum freshness fresh = fresh_file(path, max_age);
    if (fresh == FILE_FOREIGN)
        (void)fprintf(stderr, "crown-lua: file --check: %s " FILE_IS_FOREIGN "\n", path);
    return fresh == FILE_FRESH ? PRESENT : ABSENT;
}

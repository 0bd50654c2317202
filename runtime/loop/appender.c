#include "loop/appender.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "loop/helper.h"

#define GATHER_NS (NS_PER_S / 10)
#define PATIENCE_MS 1000 /* for the last write */

struct appender {
    struct loop *loop;
    char *path;
    off_t most;
    struct buffer waiting;
    struct loop_deadline gathered; /* armed for a while after each write: the next one waits */
    struct helper *helper;         /* of the write that is under way */
    bool closing;
    bool told;       /* that the disk is full, since it was last written to */
    bool threadless; /* and that was said */
};

/* One write, handed to the thread: it outlives an appender that is closed while the disk hangs. */
struct writing {
    char *path;
    off_t most;
    struct buffer text;
    int problem; /* an errno, or 0 */
};

static int open_end(const char *path)
{
    return open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Two may find the same file too long: who is given its lock as the second finds another one
 * there, and leaves that as it is. */
static int make_room(int fd, const char *path)
{
    char older[PATH_MAX];
    struct stat ours, there;
    int length = snprintf(older, sizeof(older), "%s.1", path);
    if (length < 0 || length >= (int)sizeof(older))
        return ENAMETOOLONG;
    if (flock(fd, LOCK_EX) < 0 || fstat(fd, &ours) < 0)
        return errno;
    bool is_there = stat(path, &there) == 0 && there.st_dev == ours.st_dev;
    if (is_there && there.st_ino == ours.st_ino && rename(path, older) < 0)
        return errno;
    return 0;
}

/* @return the file, with room; -1 with errno. */
static int open_with_room(const char *path, off_t most)
{
    struct stat found;
    int fd = open_end(path);
    if (fd < 0 || (fstat(fd, &found) == 0 && found.st_size < most))
        return fd;
    int problem = make_room(fd, path);
    (void)close(fd); /* nothing was written */
    errno = problem;
    return problem == 0 ? open_end(path) : -1;
}

/* A disk that was full, or a process that was killed, may have left half a line at the end. */
static void end_line(int fd)
{
    char last = '\n';
    off_t end = lseek(fd, 0, SEEK_END);
    if (end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n')
        (void)!write(fd, "\n", 1); /* if there is no room for that, there is none for more */
}

/* Where a part is taken only, the rest says why. @return an errno, or 0. */
static int write_all(int fd, const struct buffer *text)
{
    for (size_t done = 0; done < text->size;) {
        ssize_t written = write(fd, text->bytes + done, text->size - done);
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        done += (size_t)written;
    }
    return 0;
}

static void write_on_thread(void *work, int given_up)
{
    struct writing *writing = work;
    (void)given_up;
    int fd = open_with_room(writing->path, writing->most);
    if (fd < 0) {
        writing->problem = errno;
        return;
    }
    end_line(fd);
    writing->problem = write_all(fd, &writing->text);
    if (close(fd) < 0 && writing->problem == 0)
        writing->problem = errno;
}

static void writing_free(void *work)
{
    struct writing *writing = work;
    buffer_free(&writing->text);
    free(writing->path);
    free(writing);
}

static void gather(struct appender *appender)
{
    loop_at(appender->loop, &appender->gathered, loop_now(appender->loop) + GATHER_NS);
}

static bool is_for_a_while(int problem)
{
    return problem == ENOSPC || problem == EDQUOT || problem == EIO || problem == EFBIG;
}

/* A place where nothing can be kept at all is what its user chose; a disk is only full for a while.
 */
static void tell(struct appender *appender, const struct writing *writing)
{
    const char *why = strerror(writing->problem);
    bool full = is_for_a_while(writing->problem);
    if (full && !appender->told)
        log_warn("write %s: %s: lines are missing in it until there is room", writing->path, why);
    else
        log_debug("write %s: %s", writing->path, why);
    appender->told = appender->told || full;
}

static void written(void *context, void *work)
{
    struct appender *appender = context;
    const struct writing *writing = work;
    appender->helper = NULL;
    if (writing->problem != 0)
        tell(appender, writing);
    else
        appender->told = false;
    writing_free(work);
    if (appender->waiting.size > 0 && !appender->closing && !loop_at_armed(&appender->gathered))
        gather(appender);
}

static void write_waiting(struct appender *appender)
{
    static const struct helper_kind kind = {"append", write_on_thread, written, writing_free, true};
    struct crown_error err;
    struct writing *writing = calloc(1, sizeof(*writing));
    char *path = strdup(appender->path);
    if (writing == NULL || path == NULL) {
        free(path);
        free(writing);
        return; /* it goes on waiting for the next line */
    }
    *writing = (struct writing){.path = path, .most = appender->most, .text = appender->waiting};
    appender->waiting = (struct buffer){0};
    appender->helper = helper_start(appender->loop, &kind, path, writing, appender, &err);
    bool was_threadless = appender->threadless;
    appender->threadless = appender->helper == NULL;
    if (!appender->threadless)
        return;
    if (!was_threadless)
        log_debug("write %s: %s", path, err.message);
    appender->waiting = writing->text; /* until there is a thread for it */
    writing->text = (struct buffer){0};
    writing_free(writing);
}

static void write_now(struct appender *appender)
{
    gather(appender);
    write_waiting(appender);
}

static void gathered(struct loop_deadline *deadline)
{
    struct appender *appender = container_of(deadline, struct appender, gathered);
    if (appender->helper == NULL && appender->waiting.size > 0)
        write_now(appender);
}

struct appender *appender_new(struct loop *loop, const char *path, off_t most)
{
    struct appender *appender = calloc(1, sizeof(*appender));
    char *copy = strdup(path);
    if (appender == NULL || copy == NULL) {
        free(copy);
        free(appender);
        return NULL;
    }
    appender->loop = loop;
    appender->path = copy;
    appender->most = most;
    appender->gathered.fire = gathered;
    return appender;
}

void appender_add(struct appender *appender, const char *text, size_t size)
{
    if (appender->waiting.size + size > APPENDER_WAITING_MOST ||
        buffer_append(&appender->waiting, text, size) < 0)
        return;
    /* At once: what this turn of the loop goes on with may hold it until the process is killed. */
    if (appender->helper == NULL && !loop_at_armed(&appender->gathered))
        write_now(appender);
}

void appender_close(struct appender *appender)
{
    if (appender == NULL)
        return;
    appender->closing = true;
    loop_at_cancel(appender->loop, &appender->gathered);
    bool hangs = !helper_finish(appender->helper, PATIENCE_MS);
    if (!hangs && appender->waiting.size > 0) {
        write_waiting(appender);
        (void)helper_finish(appender->helper, PATIENCE_MS);
    }
    buffer_free(&appender->waiting);
    free(appender->path);
    free(appender);
}

#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sink_disk.h"

/* The end of a line whose beginning was written. */
static struct {
    char text[SINK_LINE_MOST];
    size_t length;
} rest;

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether to wait is a flag of the open file, which children and the shell share: so it is opened
 * anew. @return -1 where that is not allowed, as for the pipe of another user. */
static int open_anew(const struct stat *file)
{
    static int fd = -1; /* of standard error as it was last seen; a fork may have closed it */
    struct stat last;
    if (fd >= 0 && fstat(fd, &last) == 0 && same_file(file, &last))
        return fd;
    fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd;
}

/* @return how much was taken; -1 when nothing. */
static ssize_t write_now(const char *bytes, size_t length)
{
    struct stat file;
    if (fstat(STDERR_FILENO, &file) < 0)
        return -1;
    if (S_ISSOCK(file.st_mode))
        return send(STDERR_FILENO, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISREG(file.st_mode))
        return sink_disk_write(bytes, length);
    int fd = open_anew(&file);
    if (fd >= 0)
        return write(fd, bytes, length);
    /* Where there is room at all, a pipe has it for so much: pipe(7). */
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
        return -1;
    return write(STDERR_FILENO, bytes, length < PIPE_BUF ? length : PIPE_BUF);
}

/* @return whether anything was taken; then what was not is the rest. */
static bool offer(const char *bytes, size_t length)
{
    ssize_t wrote;
    do
        wrote = write_now(bytes, length);
    while (wrote < 0 && errno == EINTR);
    if (wrote <= 0)
        return false;
    rest.length = length - (size_t)wrote;
    memmove(rest.text, bytes + wrote, rest.length);
    return true;
}

bool sink_write(const char *line, size_t length)
{
    while (rest.length > 0)
        if (!offer(rest.text, rest.length))
            return false;
    return offer(line, length);
}

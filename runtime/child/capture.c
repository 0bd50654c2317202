#include "child/capture.h"
#include "base/container.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void capture_close(struct capture *capture)
{
    int fd = capture->watch.fd;
    loop_unwatch(&capture->watch);
    capture->open = false;
    (void)close(fd); /* nothing was written to it */
    if (capture->filled > 0)
        (void)capture->take(capture, capture->buffer, capture->filled);
    capture->filled = 0;
    (void)capture->take(capture, NULL, 0);
}

/* @return false at the end of file, and when nothing more is there now. */
static bool capture_read(struct capture *capture, bool *ended)
{
    ssize_t got = read(capture->watch.fd, capture->buffer + capture->filled,
                       sizeof(capture->buffer) - capture->filled);
    if (got < 0) {
        *ended = errno != EAGAIN && errno != EINTR;
        return false;
    }
    if (got == 0) {
        *ended = true;
        return false;
    }
    capture->filled += (size_t)got;
    size_t taken = capture->take(capture, capture->buffer, capture->filled);
    if (taken == 0 && capture->filled == sizeof(capture->buffer))
        taken = capture->filled; /* full, and still no use for it: make room */
    memmove(capture->buffer, capture->buffer + taken, capture->filled - taken);
    capture->filled -= taken;
    return true;
}

/* One chunk a turn: a child that writes without end must not hold up the loop. */
static void capture_ready(struct loop_watch *watch, unsigned events)
{
    struct capture *capture = container_of(watch, struct capture, watch);
    bool ended = false;
    (void)events;
    (void)capture_read(capture, &ended);
    if (ended)
        capture_close(capture);
}

int capture_open(struct capture *capture, struct loop *loop, capture_take *take, void *context,
                 struct crown_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set_errno(err, errno, "make a pipe for a process's output");
    /* Only our end: the process expects an ordinary pipe. */
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        int saved = errno;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return error_set_errno(err, saved, "make a pipe for a process's output");
    }
    capture->take = take;
    capture->context = context;
    capture->filled = 0;
    capture->open = true;
    capture->watch.ready = capture_ready;
    loop_watch(loop, &capture->watch, ends[0], LOOP_READ);
    return ends[1];
}

void capture_finish(struct capture *capture)
{
    if (!capture->open)
        return;
    bool ended = false;
    while (capture_read(capture, &ended))
        continue;
    capture_close(capture);
}

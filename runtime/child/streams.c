#include "child/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static const char *const stream_names[] = {"stdin", "stdout", "stderr"};

/* Each line that the command writes is a line of the log. */
static size_t log_line(struct capture *capture, const char *bytes, size_t size)
{
    const struct streams *streams = capture->context;
    size_t taken = 0;
    while (taken < size) {
        const char *start = bytes + taken;
        const char *end = memchr(start, '\n', size - taken);
        if (end == NULL && capture->open && size - taken < CAPTURE_CHUNK)
            break; /* the rest of it is still to come */
        size_t length = end != NULL ? (size_t)(end - start) : size - taken;
        char line[CAPTURE_CHUNK + 1];
        memcpy(line, start, length);
        line[length] = '\0';
        struct log_field fields[2 + CHILD_LOG_FIELDS] = {
            log_string("name", streams->name),
            log_string("stream", stream_names[capture - streams->capture]),
        };
        unsigned count = 2;
        for (char *const *pair = streams->fields;
             pair != NULL && pair[0] != NULL && count < 2 + CHILD_LOG_FIELDS; pair += 2)
            fields[count++] = log_string(pair[0], pair[1]);
        log_event(LOG_INFO, line, fields, count);
        taken += end != NULL ? length + 1 : length;
    }
    if (streams->tail != NULL)
        tail_add(streams->tail, bytes, taken);
    return taken;
}

/* Without waiting for anything: this process has other elections. A FIFO is opened at both ends, so
 * that neither the opening nor the command depends on who is at the other one (fifo(7)). */
static int open_path(int stream, const char *path, struct crown_error *err)
{
    struct stat found;
    int flags = stream == STDIN_FILENO ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND;
    if (stat(path, &found) == 0 && S_ISFIFO(found.st_mode))
        flags = O_RDWR;
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd >= 0 && fcntl(fd, F_SETFL, flags & O_APPEND) == 0)
        return fd; /* the command expects one that blocks */
    int saved = errno;
    if (fd >= 0)
        (void)close(fd);
    return error_set_errno(err, saved, "open %s for the child's %s", path, stream_names[stream]);
}

int streams_open(struct streams *streams, struct loop *loop, const char *name,
                 const struct child_options *options, struct tail *tail, struct child_spec *spec,
                 struct crown_error *err)
{
    streams->name = name;
    streams->fields = options->log_fields;
    streams->tail = tail;
    if (tail != NULL)
        tail_begin(tail, options->keep_output);
    for (int stream = 0; stream < 3; stream++) {
        int fd = -1;
        switch (options->output[stream]) {
        case CHILD_OUTPUT_INHERIT:
            spec->stdio[stream] = CHILD_STDIO_INHERIT;
            continue;
        case CHILD_OUTPUT_NULL:
            spec->stdio[stream] = CHILD_STDIO_NULL;
            continue;
        case CHILD_OUTPUT_LOG:
            fd = capture_open(&streams->capture[stream], loop, log_line, streams, err);
            break;
        case CHILD_OUTPUT_PATH:
            fd = open_path(stream, options->path[stream], err);
            break;
        }
        if (fd < 0)
            return -1;
        spec->stdio[stream] = CHILD_STDIO_FD;
        spec->stdio_fd[stream] = fd;
    }
    return 0;
}

void streams_hand_over(struct child_spec *spec)
{
    for (int stream = 0; stream < 3; stream++)
        if (spec->stdio[stream] == CHILD_STDIO_FD)
            (void)close(spec->stdio_fd[stream]); /* the process has its own copy */
}

void streams_finish(struct streams *streams)
{
    for (int stream = 0; stream < 3; stream++)
        capture_finish(&streams->capture[stream]);
}

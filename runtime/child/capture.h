/**
 * Reads what a process writes: a pipe whose far end goes to the process, whole for crown.exec or
 * line by line for the log.
 */
#ifndef CROWN_CHILD_CAPTURE_H
#define CROWN_CHILD_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "loop/loop.h"

struct capture;

/**
 * Bytes came, or, with size 0, the writers are all gone. The callee takes what it wants from the
 * front of `bytes` and returns how much; what is left is offered again together with what comes
 * next.
 */
typedef size_t capture_take(struct capture *capture, const char *bytes, size_t size);

#define CAPTURE_CHUNK 4096 /* a longer line is taken in pieces */

/** Embed it; zero-initialise before first use. */
struct capture {
    capture_take *take;
    void *context;
    struct loop_watch watch;
    char buffer[CAPTURE_CHUNK];
    size_t filled;
    bool open;
};

/** Makes the pipe and starts reading. @return the writing end for the process (the caller closes
 * it), or -1. */
int capture_open(struct capture *capture, struct loop *loop, capture_take *take, void *context,
                 struct crown_error *err);

/** Takes what the pipe holds right now, then closes it: the process is gone, and a descendant that
 * lives on elsewhere must not keep us waiting. */
void capture_finish(struct capture *capture);

#endif

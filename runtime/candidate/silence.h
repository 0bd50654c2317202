/**
 * A command that has to say WATCHDOG=1 by sd_notify(3) at least so often. One that falls silent is
 * stopped; its restart policy says what follows.
 */
#ifndef CROWN_CANDIDATE_SILENCE_H
#define CROWN_CANDIDATE_SILENCE_H

#include "base/error.h"
#include "loop/loop.h"
#include "telemetry/notice_socket.h"

struct child_options;

/** Of a command; zeroed before. */
struct silence {
    struct notice_socket socket;
    struct loop_deadline due;
    struct loop *loop; /* NULL: it may be silent */
    int64_t allowed_ns, until_ns;
    void (*fell_silent)(struct silence *silence);
    char variable[160], interval[64]; /* of its environment */
};

/** Opens the socket, before the command starts; nothing where it may be silent. The time counts
 * from now on. @return 0, or -1 with `err`. */
int silence_begin(struct silence *silence, struct loop *loop, const struct child_options *options,
                  struct crown_error *err);
/** It is not waited for any more. */
void silence_end(struct silence *silence);

#endif

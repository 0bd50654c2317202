/**
 * What signals ask of the supervisor: to end in order, or at once.
 */
#ifndef CROWN_PROCESS_REQUESTS_H
#define CROWN_PROCESS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

/** A second SIGINT sooner than this is the same request: timeout(1) signals its command, and then
 * the whole group, in which that is. */
#define REQUESTS_SAME_NS INT64_C(500000000)

enum request {
    REQUEST_STOP, /* end in order */
    REQUEST_END,  /* at once: somebody is tired of waiting */
};

struct requests {
    bool interrupted;       /* SIGINT has come */
    int64_t interrupted_ns; /* for the first time */
};

/** @param now_ns of CLOCK_MONOTONIC. @return what a signal asks for: SIGTERM or SIGINT. */
enum request requests_signal(struct requests *requests, int signal, int64_t now_ns);

#endif

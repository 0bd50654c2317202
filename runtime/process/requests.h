/**
 * What signals, and the loss of a terminal, ask of the supervisor: to end in order, or at once.
 */
#ifndef CROWN_PROCESS_REQUESTS_H
#define CROWN_PROCESS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

/** A second SIGINT sooner than this is the same request: timeout(1) signals its command, and then
 * the whole group, in which that is. */
#define REQUESTS_SAME_NS INT64_C(500000000)

enum request {
    REQUEST_NONE,
    REQUEST_STOP, /* end in order */
    REQUEST_END,  /* at once: somebody is tired of waiting */
};

struct requests {
    bool from_terminal;     /* started from a terminal, whose loss is a request to end */
    int terminal;           /* which standard stream shows that it has hung up; -1: none */
    bool interrupted;       /* SIGINT has come */
    int64_t interrupted_ns; /* for the first time */
};

/** Looks how this process was started. Call it before SIGHUP is given any other disposition, since
 * nohup(1) has it ignored. */
void requests_init(struct requests *requests);

/** Whatever becomes of the terminal: it asks for nothing. */
void requests_keep(struct requests *requests);

/** @param now_ns of CLOCK_MONOTONIC. @return what a signal asks for: SIGTERM, SIGINT, SIGHUP. */
enum request requests_signal(struct requests *requests, int signal, int64_t now_ns);

/** The stream `terminal` has hung up; it is not looked at again. @return what that asks for. */
enum request requests_hangup(struct requests *requests);

#endif

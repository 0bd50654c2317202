/**
 * The next step for a person who reads why a store was not reached: one table for all clients.
 */
#ifndef CROWN_BASE_ADVICE_H
#define CROWN_BASE_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

/** The connection that failed. */
struct advice_link {
    const char *store; /* "redis", "nats", …: its URL's scheme with TLS is known here */
    bool tls;          /* the client speaks TLS */
    bool spoke;        /* the server has answered before, so that host and port are right */
    bool answered;     /* the problem is the server's answer */
};

/**
 * Finds what to look at next.
 * @param problem what happened, as the client says it.
 * @param text gets the advice, without a full stop: "is the server running?"
 * @return whether there is one; none where the problem itself says what to do.
 */
bool advice(const struct advice_link *link, const char *problem, char *text, size_t size);

#endif

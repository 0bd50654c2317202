/**
 * One try at one server, on a thread of its own: whatever libpq reads, asks and computes until a
 * connection is open (files, GSS, certificates, as many rounds of SCRAM as the server wishes) holds
 * up nobody else.
 */
#ifndef CROWN_POSTGRES_ATTEMPT_H
#define CROWN_POSTGRES_ATTEMPT_H

#include "postgres/libpq.h"
#include <stdint.h>

#include "base/error.h"
#include "loop/helper.h"
#include "postgres/target.h"

/** @param conn open and non-blocking, the callee's; NULL with `err`. */
typedef void postgres_attempted(void *context, PGconn *conn, const struct crown_error *err);

struct postgres_attempt_options {
    const char *url;
    const struct postgres_targets *targets;
    size_t target;       /* which of them */
    const char *address; /* what its name was found to stand for; NULL: it needs no finding */
    int64_t silence_ns;  /* how long a peer that acknowledges nothing goes unnoticed later on */
};

/**
 * Starts; what it is given is copied.
 * @return for helper_abandon, until `done` was called from the loop; NULL with `err`.
 */
struct helper *postgres_attempt(struct loop *loop, const struct postgres_attempt_options *options,
                                postgres_attempted *done, void *context, struct crown_error *err);

#endif

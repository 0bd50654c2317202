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
#include "loop/loop.h"
#include "postgres/parting.h"
#include "postgres/target.h"

struct postgres_attempt;

/** @param conn open and non-blocking, the callee's; NULL with `err`. */
typedef void postgres_attempted(void *context, PGconn *conn, const struct crown_error *err);

struct postgres_attempt_options {
    const char *url;
    const struct postgres_targets *targets;
    size_t target;       /* which of them */
    const char *address; /* what its name was found to stand for; NULL: it needs no finding */
    int64_t silence_ns;  /* how long a peer that acknowledges nothing goes unnoticed later on */
};

/** Writes which server a try is for: "192.0.2.1:5432". */
void postgres_attempt_place(const struct postgres_attempt_options *options,
                            char place[POSTGRES_PLACE_SIZE]);

/**
 * Starts; what it is given is copied.
 * @return for postgres_attempt_give_up, until `done` was called from the loop; NULL with `err`.
 */
struct postgres_attempt *postgres_attempt(struct loop *loop,
                                          const struct postgres_attempt_options *options,
                                          postgres_attempted *done, void *context,
                                          struct crown_error *err);
/** `done` is not called. What the server has of it counts until it is gone. NULL is fine. */
void postgres_attempt_give_up(struct postgres_attempt *attempt, struct postgres_partings *partings);

#endif

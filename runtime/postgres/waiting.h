/**
 * Requests that wait for a connection: they wait for the same one, so they give up together, when
 * the most impatient of them does.
 */
#ifndef CROWN_POSTGRES_WAITING_H
#define CROWN_POSTGRES_WAITING_H

#include <stdbool.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"
#include "postgres/request.h"

struct postgres_waiting {
    struct loop *loop;
    struct list requests;
    struct loop_deadline patience;
    const struct crown_error *cause; /* why there is no connection; told to those who gave up */
    const struct crown_error *unanswered; /* what is told where that is not known yet */
};

/**
 * @param cause borrowed; its code is ERROR_NONE where none is known.
 * @param unanswered borrowed; what is told then.
 */
void postgres_waiting_init(struct postgres_waiting *waiting, struct loop *loop,
                           const struct crown_error *cause, const struct crown_error *unanswered);
bool postgres_waiting_empty(const struct postgres_waiting *waiting);
void postgres_waiting_add(struct postgres_waiting *waiting, struct postgres_request *request);
/** @return the first one, which waits no more; NULL: there is none. */
struct postgres_request *postgres_waiting_take(struct postgres_waiting *waiting);
void postgres_waiting_fail(struct postgres_waiting *waiting, const struct crown_error *err);
/** Fails those that are left with ERROR_CLOSED. */
void postgres_waiting_end(struct postgres_waiting *waiting);

#endif

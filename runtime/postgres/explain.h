/**
 * What goes wrong with a connection, in words that name the server and the next step.
 */
#ifndef CROWN_POSTGRES_EXPLAIN_H
#define CROWN_POSTGRES_EXPLAIN_H

#include "base/error.h"

/** What the server has said so far. */
enum postgres_heard {
    POSTGRES_SILENT,  /* it has not let us in */
    POSTGRES_SPOKE,   /* it has let us in before */
    POSTGRES_REFUSED, /* the error is its answer */
};

/**
 * Puts an error into words: "postgres at db:5432: Connection refused; is the server running …?"
 * One that names the server already is left as it is.
 * @param host NULL: the local server.
 * @param port NULL: 5432.
 */
void postgres_explain(const char *host, const char *port, enum postgres_heard heard,
                      struct crown_error *err);

#endif

/**
 * What goes wrong with a connection, in words that name the server and the next step.
 */
#ifndef CROWN_POSTGRES_EXPLAIN_H
#define CROWN_POSTGRES_EXPLAIN_H

#include <stdbool.h>

#include "base/error.h"

/**
 * Puts an error into words: "postgres at db:5432: Connection refused; is the server running …?"
 * One that names the server already is left as it is.
 * @param host NULL: the local server.
 * @param port NULL: 5432.
 * @param spoke whether the server has let us in before.
 */
void postgres_explain(const char *host, const char *port, bool spoke, struct crown_error *err);

#endif

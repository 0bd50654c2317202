/**
 * What a server says, without the password that it was told: what is there instead of a server may
 * repeat it, at any time.
 */
#ifndef CROWN_POSTGRES_BLOTTED_H
#define CROWN_POSTGRES_BLOTTED_H

#include "postgres/libpq.h"

/** Blots before a message is cut to its length: the cut may leave half a password.
 * @param text NULL is fine. @return a copy, to be freed; NULL: there is no text, or no memory. */
char *postgres_blotted(const PGconn *conn, const char *text);

#endif

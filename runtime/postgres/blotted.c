#include "postgres/blotted.h"

#include <stdlib.h>
#include <string.h>

#define PASSWORD_LEAST 4 /* bytes; less stands in many words by chance */

char *postgres_blotted(const PGconn *conn, const char *text)
{
    const char *password = libpq.PQpass(conn);
    size_t length = password != NULL ? strlen(password) : 0;
    char *copy = text != NULL ? strdup(text) : NULL;
    if (copy == NULL || length < PASSWORD_LEAST)
        return copy;
    char *end = copy;
    for (const char *found; (found = strstr(text, password)) != NULL; text = found + length) {
        end = mempcpy(end, text, (size_t)(found - text));
        end = mempcpy(end, "***", 3);
    }
    memcpy(end, text, strlen(text) + 1);
    return copy;
}

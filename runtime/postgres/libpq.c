#include "postgres/libpq.h"

#include "base/library.h"
#include "net/tls.h"

struct libpq libpq;

int libpq_load(struct crown_error *err)
{
    static const struct library_symbol symbols[] = {
#define LIBPQ_ROW(name) {#name, offsetof(struct libpq, name)},
        LIBPQ_FUNCTIONS(LIBPQ_ROW)
#undef LIBPQ_ROW
    };
    struct crown_error why;
    if (libpq.PQclear != NULL)
        return 0;
    tls_outlast_exit();
    if (library_load("libpq.so.5", "libpq of PostgreSQL 14 or later is needed", symbols,
                     sizeof(symbols) / sizeof(symbols[0]), &libpq, &why) < 0)
        return error_set(err, ERROR_USAGE, "postgres: %s", why.message);
    return 0;
}

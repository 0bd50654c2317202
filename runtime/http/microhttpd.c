#include "http/microhttpd.h"

#include "base/library.h"

struct microhttpd microhttpd;

int microhttpd_load(struct crown_error *err)
{
    static const struct library_symbol symbols[] = {
#define MICROHTTPD_ROW(name) {#name, offsetof(struct microhttpd, name)},
        MICROHTTPD_FUNCTIONS(MICROHTTPD_ROW)
#undef MICROHTTPD_ROW
    };
    struct crown_error why;
    if (microhttpd.MHD_run != NULL)
        return 0;
    if (library_load("libmicrohttpd.so.12", "install libmicrohttpd12", symbols,
                     sizeof(symbols) / sizeof(symbols[0]), &microhttpd, &why) < 0)
        return error_set(err, ERROR_USAGE, "http: %s", why.message);
    return 0;
}

/**
 * libmicrohttpd, loaded when a server is opened (base/library.h says why).
 */
#ifndef CROWN_HTTP_MICROHTTPD_H
#define CROWN_HTTP_MICROHTTPD_H

#include <microhttpd.h>

#include "base/error.h"

#define MICROHTTPD_FUNCTIONS(X)                                                                    \
    X(MHD_start_daemon)                                                                            \
    X(MHD_stop_daemon)                                                                             \
    X(MHD_run)                                                                                     \
    X(MHD_get_timeout)                                                                             \
    X(MHD_get_version)                                                                             \
    X(MHD_get_daemon_info)                                                                         \
    X(MHD_get_connection_info)                                                                     \
    X(MHD_lookup_connection_value)                                                                 \
    X(MHD_create_response_from_buffer)                                                             \
    X(MHD_add_response_header)                                                                     \
    X(MHD_queue_response)                                                                          \
    X(MHD_suspend_connection)                                                                      \
    X(MHD_resume_connection)                                                                       \
    X(MHD_destroy_response)

/** The functions, by their own names: `microhttpd.MHD_run(daemon)`. All NULL before
 * microhttpd_load. */
struct microhttpd {
#define MICROHTTPD_FIELD(name) __typeof__(name) *name;
    MICROHTTPD_FUNCTIONS(MICROHTTPD_FIELD)
#undef MICROHTTPD_FIELD
};
extern struct microhttpd microhttpd;

/** Loads the library, once. @return 0, or -1 with ERROR_USAGE. */
int microhttpd_load(struct crown_error *err);

#endif

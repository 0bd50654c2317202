/**
 * The one error type of the C side: filled where the failure is seen, with what was being done,
 * on what, and the system's reason; passed up untouched. In Lua it becomes `nil, message, code`.
 */
#ifndef CROWN_BASE_ERROR_H
#define CROWN_BASE_ERROR_H

#include <stddef.h>

enum error_code {
    ERROR_NONE,
    ERROR_USAGE,     /* the caller's words are wrong */
    ERROR_SYSTEM,    /* a system call failed */
    ERROR_TIMEOUT,   /* the time allowed was used up */
    ERROR_CANCELLED, /* the waiting task was told to end */
    ERROR_CLOSED,    /* the other side closed, or the handle was closed here */
    ERROR_REFUSED,   /* nobody listens there */
    ERROR_DNS,       /* a name has no address */
    ERROR_TLS,       /* handshake or certificate */
    ERROR_STORE,     /* the store answered with an error */
    ERROR_PROTOCOL,  /* bytes that make no sense, or too many */
    ERROR_MEMORY,
};

/** Room for advice that names a server and two names of Postgres, of 63 bytes each. */
#define ERROR_TEXT 512

struct crown_error {
    enum error_code code;
    char message[ERROR_TEXT];
};

/**
 * Fills an error.
 * @param err may be NULL: then nothing is kept.
 * @param format printf-like, one line: "connect to db:5432: no route to host".
 * @return always -1, so that `return error_set(…)` reads well.
 */
int error_set(struct crown_error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The same with `: ` and error_reason(saved_errno) appended, code ERROR_SYSTEM. @return -1. */
int error_set_errno(struct crown_error *err, int saved_errno, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** @return the system's reason; where somebody has set a limit, also which. */
const char *error_reason(int saved_errno);

/** @return what to say of a process or thread that could not be started, by its errno: EAGAIN alone
 * does not tell anybody that a limit was reached. */
const char *error_of_start(int saved_errno);

/** @return the word users and Lua see: "timeout", "closed", "dns", … */
const char *error_code_name(enum error_code code);

#endif

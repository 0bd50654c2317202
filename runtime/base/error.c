#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

int error_set(struct crown_error *err, enum error_code code, const char *format, ...)
{
    if (err == NULL)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    err->code = code;
    (void)vsnprintf(err->message, sizeof(err->message), format, arguments); /* cut is fine */
    va_end(arguments);
    return -1;
}

/* A limit that somebody has set says less of itself than a full disk does. */
const char *error_reason(int saved_errno)
{
    switch (saved_errno) {
    case EFBIG:
        return "File too large (ulimit -f, LimitFSIZE=)";
    case EMFILE:
        return "Too many open files (ulimit -n, LimitNOFILE=)";
    default:
        return strerror(saved_errno);
    }
}

int error_set_errno(struct crown_error *err, int saved_errno, const char *format, ...)
{
    if (err == NULL)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    err->code = ERROR_SYSTEM;
    (void)vsnprintf(err->message, sizeof(err->message), format, arguments);
    va_end(arguments);
    size_t length = strlen(err->message);
    (void)snprintf(err->message + length, sizeof(err->message) - length, ": %s",
                   error_reason(saved_errno));
    return -1;
}

/* A stack that has no place is told as a process too many. */
static bool is_memory_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

const char *error_of_start(int saved_errno)
{
    if (saved_errno != EAGAIN)
        return error_reason(saved_errno);
    return is_memory_limited() ? "no more processes or memory are allowed (ulimit -u, ulimit -v, "
                                 "TasksMax, pids.max)"
                               : "no more processes are allowed (ulimit -u, TasksMax, pids.max)";
}

const char *error_code_name(enum error_code code)
{
    static const char *const names[] = {
        [ERROR_NONE] = "none",
        [ERROR_USAGE] = "usage",
        [ERROR_SYSTEM] = "system",
        [ERROR_TIMEOUT] = "timeout",
        [ERROR_CANCELLED] = "cancelled",
        [ERROR_CLOSED] = "closed",
        [ERROR_REFUSED] = "refused",
        [ERROR_DNS] = "dns",
        [ERROR_TLS] = "tls",
        [ERROR_STORE] = "store",
        [ERROR_PROTOCOL] = "protocol",
        [ERROR_MEMORY] = "memory",
    };
    return code < sizeof(names) / sizeof(names[0]) ? names[code] : "unknown";
}

#include "process/limits.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

/* Bytes. Lines of the log and nested JSON take up to 100 KiB, and each thread that connects has as
 * much as this process: TLS and libpq need most of it. */
#define STACK_LEAST (256u << 10)

int limits_meet(void)
{
    struct rlimit stack;
    (void)signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur >= STACK_LEAST)
        return 0;
    (void)fprintf(stderr,
                  "crown-lua: stacks of %lu KiB are too small: allow %u KiB or more (ulimit -s, "
                  "LimitSTACK=)\n",
                  (unsigned long)(stack.rlim_cur >> 10), STACK_LEAST >> 10);
    return -1;
}

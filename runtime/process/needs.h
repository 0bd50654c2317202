/**
 * What there is no supervisor without.
 */
#ifndef CROWN_PROCESS_NEEDS_H
#define CROWN_PROCESS_NEEDS_H

#include "process/keepers.h"

/** Where it goes. */
struct needs {
    int *signals; /* a signalfd */
    int *journal; /* a memfd that runtimes hand on to each other */
    struct keepers *keepers;
};

/** Asks the kernel for it. @return what it does not give, for a reason in errno, or NULL. */
const char *needs_ask(const struct needs *needs);

#endif

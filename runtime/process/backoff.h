/**
 * How long to wait before the next start of what keeps ending: not at all at first, then 0.1 s,
 * doubled each time up to 5 s. Who lasted for 30 s starts this anew.
 */
#ifndef CROWN_PROCESS_BACKOFF_H
#define CROWN_PROCESS_BACKOFF_H

#include <stdint.h>

#define BACKOFF_MOST_NS INT64_C(5000000000)

struct backoff {
    int64_t next_ns; /* zero: it was calm so far */
};

/** @param lasted_ns how long what has ended had done its work. @return the pause, in ns. */
int64_t backoff_pause_ns(struct backoff *backoff, int64_t lasted_ns);

#endif

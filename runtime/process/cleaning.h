/**
 * The supervisor kills what a keeper or a runtime left behind that died before its time: in rounds,
 * with pauses that grow, until nothing of it is there.
 */
#ifndef CROWN_PROCESS_CLEANING_H
#define CROWN_PROCESS_CLEANING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/keepers.h"

/** Zero-initialise it. */
struct cleaning {
    bool orphans;     /* there may be some */
    bool unkillable;  /* some cannot be killed, and that was said */
    int64_t pause_ns; /* until the next round */
};

void cleaning_begin(struct cleaning *cleaning);
/** A round, where there may be orphans. */
void cleaning_go_on(struct cleaning *cleaning, pid_t runtime, const struct keepers *keepers);

#endif

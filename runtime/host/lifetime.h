/**
 * When the runtime ends: after its script and its last election, or when it is told to.
 */
#ifndef CROWN_HOST_LIFETIME_H
#define CROWN_HOST_LIFETIME_H

#include <stdbool.h>

#include "host/heartbeat.h"
#include "loop/loop.h"

struct lifetime {
    struct loop *loop;
    struct heartbeat *heartbeat;
    unsigned holds;
    bool main_ended;
    bool exiting;
    int code, code_at_end;
};

/** Something keeps the loop running (an election, a listener); each hold is followed by a release.
 */
void lifetime_hold(struct lifetime *lifetime);
void lifetime_release(struct lifetime *lifetime);

/** The script is over, or is not waited for any more. */
void lifetime_main_ended(struct lifetime *lifetime);

/** Ends the runtime with this code, in order but without waiting for anything. The first call
 * counts. */
void lifetime_exit(struct lifetime *lifetime, int code);

/** The exit code for when the last election has ended; 0 unless set. */
void lifetime_set_code(struct lifetime *lifetime, int code);

/** After each turn of the loop: ends it when nothing holds it any more. */
void lifetime_turn(struct lifetime *lifetime);

#endif

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
    unsigned elections; /* that have begun and not ended */
    unsigned holds;     /* what else the program waits for, such as a listener */
    bool main_ended;
    bool stopping; /* told to stop: waits for its elections alone */
    bool exiting;
    bool yields; /* to who takes over what was given back */
    int code, code_at_end;
    bool code_fixed;
    struct loop_deadline patience; /* for tasks that still work, once nothing holds the loop */
    struct loop_deadline yielded;
};

/** An election begins, or has ended. */
void lifetime_election(struct lifetime *lifetime, bool begins);

/** Something else keeps the loop running, such as a listener; each hold is followed by a release.
 */
void lifetime_hold(struct lifetime *lifetime);
void lifetime_release(struct lifetime *lifetime);

/** @return whether an election or something else keeps the loop running. */
bool lifetime_is_held(const struct lifetime *lifetime);

/** The script is over. */
void lifetime_main_ended(struct lifetime *lifetime);

/** Told to stop: neither the script nor anything that it has opened is waited for any more, only
 * the elections, which end in order. */
void lifetime_stop(struct lifetime *lifetime);

/** A lease was given back on the way to the end. What the end takes (a process of many pages, and
 * one in the store for each connection) would take it from the cores on which the next leader
 * starts: so the end comes a moment later. */
void lifetime_yield(struct lifetime *lifetime);

/** Ends the runtime with this code, in order but without waiting for anything. The first call
 * counts. */
void lifetime_exit(struct lifetime *lifetime, int code);

/** The exit code for when the last election has ended; 0 unless set. */
void lifetime_set_code(struct lifetime *lifetime, int code);

/** The same, and no later lifetime_set_code changes it: a command that is stopped with its election
 * ends after the reason was known. */
void lifetime_fix_code(struct lifetime *lifetime, int code);

/** After each turn of the loop that has nothing left to do: ends it when nothing holds it any more.
 * A task that never waits is given a second. */
void lifetime_turn(struct lifetime *lifetime);

#endif

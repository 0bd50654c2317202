/**
 * What becomes of a runtime that is silent for too long: it is asked what it does a little before
 * that, which the next one is told and the log says, and killed unless it makes progress.
 */
#ifndef CROWN_PROCESS_WATCHDOG_H
#define CROWN_PROCESS_WATCHDOG_H

#include <stdint.h>
#include <sys/types.h>

#include "process/pulse.h"
#include "process/wire.h"

struct watchdog {
    struct pulse pulse;
    bool asked;           /* in this silence */
    char held[WIRE_TEXT]; /* what the last one did when it was killed; "" where it was not */
};

/** For a runtime that was just started. What held the last one is forgotten. */
void watchdog_start(struct watchdog *watchdog, pid_t runtime);
/** It has made progress. */
void watchdog_beat(struct watchdog *watchdog);
/** It has nothing to do until then: pulse_idle. */
void watchdog_idle(struct watchdog *watchdog, int64_t until_ns);
/** A process of ours was stopped, or goes on. */
void watchdog_heed(struct watchdog *watchdog);
/** It says what it does. */
void watchdog_answer(struct watchdog *watchdog, const char *text);
/** How much silence is death from now on; 0: none is. */
void watchdog_limit(struct watchdog *watchdog, int64_t limit_ns);
/** Kills it when it is time to. */
void watchdog_look(struct watchdog *watchdog);
/** @return when to look again, on CLOCK_MONOTONIC. */
int64_t watchdog_next_ns(const struct watchdog *watchdog);

#endif

/**
 * Whether a runtime still gets on with its work, as its supervisor sees it. It beats as it makes
 * progress; what passes without a beat is silence, and too much of it is death. A runtime that has
 * work but no processor is not silent: while it waits for one, only the processor time that it gets
 * counts. One that sleeps, is stopped, or waits for a disk is silent for as long as that takes.
 */
#ifndef CROWN_PROCESS_PULSE_H
#define CROWN_PROCESS_PULSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

#define PULSE_IDLE_MOST_NS (30 * NS_PER_S)

struct pulse {
    pid_t pid;
    int64_t limit_ns;   /* this much silence is death; 0: none is */
    int64_t started_ns; /* all instants on CLOCK_MONOTONIC: a suspended host is no silence */
    int64_t last_beat_ns;
    int64_t looked_ns;     /* until when silence has been counted */
    int64_t next_ns;       /* when to look again; TIME_NEVER: nobody need */
    int64_t processor_ns;  /* of the runtime, at looked_ns */
    int64_t silent_ns;     /* so far */
    int64_t idle_until_ns; /* until then it has nothing to do, and says so before it has */
    int64_t mark_ns;       /* so much silence is waited for */
    bool running;          /* at the last look: it ran, or waited for a processor */
    bool stopped;          /* at the last look: by SIGSTOP, or a debugger */
};

/** For a runtime that was just started. */
void pulse_start(struct pulse *pulse, pid_t pid);
/** The runtime has made progress. */
void pulse_beat(struct pulse *pulse);
/**
 * It has nothing to do until then, on CLOCK_MONOTONIC, and beats before it does anything earlier:
 * so what passes is no silence, unless it is stopped. No longer than PULSE_IDLE_MOST_NS is
 * believed.
 */
void pulse_idle(struct pulse *pulse, int64_t until_ns);
/** A process of ours was stopped, or goes on: perhaps this one. */
void pulse_heed(struct pulse *pulse);
/** From now on this much silence is death. */
void pulse_limit(struct pulse *pulse, int64_t limit_ns);
/** How much silence pulse_look waits for from now on; more than half of what is death. */
void pulse_mark(struct pulse *pulse, int64_t mark_ns);
/** Counts what has passed, when it is time to. @return whether the runtime has been silent for as
 * long as was waited for. */
bool pulse_look(struct pulse *pulse);
/** @return for how long it made progress, from its start to its last beat. */
int64_t pulse_lasted_ns(const struct pulse *pulse);

#endif

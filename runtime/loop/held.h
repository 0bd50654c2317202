/**
 * For debugging: tells what held the loop, with its stack. CROWN_LOOP_HELD names a file; each turn
 * that took longer than HELD_NS, less the time in which other processes had the processor, adds a
 * report to it. Without the variable nothing of this costs anything.
 */
#ifndef CROWN_LOOP_HELD_H
#define CROWN_LOOP_HELD_H

#include "base/clock.h"

#define HELD_NS (20 * NS_PER_MS)

struct held;

/** @return NULL where CROWN_LOOP_HELD is not set, or cannot be served. */
struct held *held_open(void);
/** NULL is fine, here and below. */
void held_close(struct held *held);
/** A turn begins, or is over. In one thread of a process. */
void held_begin(struct held *held);
void held_end(struct held *held);

#endif

/**
 * What survives the runtime: which elections it was leading, in a memfd of the supervisor's. A
 * runtime that was killed comes back, finds its elections there, and tells their handlers what
 * happened. Open-addressed tables of 16-byte slots (hash of the name, epoch); nothing else is ever
 * stored. It grows with the elections that were led.
 */
#ifndef CROWN_CANDIDATE_JOURNAL_H
#define CROWN_CANDIDATE_JOURNAL_H

#include <stdint.h>

#include "base/error.h"

struct journal;

/** Beside the epoch of a term whose `won` has not begun to run: nothing is owed to it. No epoch is
 * as large: they are Lua's numbers. */
#define JOURNAL_UNTOLD (UINT64_C(1) << 63)

/** Maps the supervisor's memfd, which it sizes. @param fd changes owner, also where this fails.
 * @return NULL with `err`. */
struct journal *journal_open(int fd, struct crown_error *err);
void journal_close(struct journal *journal);

/** Notes that `name` leads with `epoch`, or, with 0, that it does not. Without memory nothing is
 * kept: then only the event of a dead runtime is missing. */
void journal_set(struct journal *journal, const char *name, uint64_t epoch);

/** @return what was noted last: the epoch under which `name` led, beside JOURNAL_UNTOLD where that
 * was noted; or 0. */
uint64_t journal_get(const struct journal *journal, const char *name);

#endif

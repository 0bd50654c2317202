/**
 * Turns to log in: of what connects to one URL, so many at once. A slow server takes logins in
 * their order, also those that were given up meanwhile. If a thousand came at once, most would be
 * too late, and their next tries would queue up behind what is left of these, for ever.
 */
#ifndef CROWN_POSTGRES_TURNS_H
#define CROWN_POSTGRES_TURNS_H

#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"

/** The most that log in at once. */
#define POSTGRES_TURNS_MOST 64

struct postgres_turns;

/** Embed it; zero-initialise before first use. */
struct postgres_turn {
    struct list_node link;     /* while it waits */
    struct postgres_turns *of; /* NULL: it neither waits nor is under way */
    void (*begin)(struct postgres_turn *turn);
};

/**
 * @param url copied. Who waits for no longer than others do is not behind them: those with another
 * `silence_ns` have turns of their own.
 * @return 1: it is its turn now; 0: `begin` follows, from the loop; -1 with `err`.
 */
int postgres_turn_take(struct postgres_turn *turn, struct loop *loop, const char *url,
                       int64_t silence_ns, struct crown_error *err);
/** It is over, or is not wanted any more; harmless without one. */
void postgres_turn_leave(struct postgres_turn *turn);

#endif

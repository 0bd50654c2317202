/**
 * What happened in a test's loop, in order.
 */
#ifndef CROWN_SPEC_SEEN_H
#define CROWN_SPEC_SEEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "loop/loop.h"

#define SEEN_MOST 200u

struct seen {
    struct loop *loop;
    int64_t at_ns[SEEN_MOST];
    unsigned count;
    unsigned wanted;   /* stops the loop when so many have happened */
    unsigned progress; /* where seen_progress is told of it */
};

extern struct seen seen;

/** cmocka's set-up and teardown. */
int seen_open(void **state);
int seen_close(void **state);
#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, seen_open, seen_close)

void seen_note(int64_t at_ns);

/** For a deadline: notes its instant. It never fires early. */
void seen_deadline(struct loop_deadline *deadline);

/** For a watch: reads a byte, notes it, and ends the watch from inside its own callback. */
void seen_ready(struct loop_watch *watch, unsigned events);

struct step {
    struct loop_job job;
    int64_t number;
    struct step *next; /* posted by this one */
};

/** For the job of a step: notes its number. */
void seen_step(struct loop_job *job);

/** For loop_on_turn: context is an unsigned. */
void seen_turn(void *context);
/** For loop_on_progress: context is &seen. */
void seen_progress(void *context);

#endif

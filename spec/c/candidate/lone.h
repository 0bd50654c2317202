/**
 * A candidate without an oracle, in a process without a supervisor: the test says what the core has
 * decided, and hears as the supervisor, and as the keeper, what becomes of it.
 */
#ifndef CROWN_SPEC_LONE_H
#define CROWN_SPEC_LONE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "candidate/env.h"
#include "candidate/state.h"
#include "child/children.h"
#include "process/wire.h"

struct lone {
    struct candidate candidate;
    struct candidate_env env;
    struct children children;
    struct child_options options; /* of the leader's and the follower's command */
    struct commands commands;
    int supervisor;         /* the test's end of the line */
    int keeper;             /* the test's end of the command's; -1: none was started */
    struct child_spec spec; /* the last command that was started */
};

extern struct lone lone;

/** cmocka's set-up and teardown. */
int lone_open(void **state);
int lone_close(void **state);

/** Starts the command of a role until these instants, in a term of epoch 7, and hears of it:
 * lone.spec. The leader before had epoch 6. */
void lone_start(enum election_role role, int64_t stop_ns, int64_t kill_ns, int64_t deadline_ns);

/** Hears of a command that was started: lone.spec. */
void lone_hear_start(void);

/** @return the next message to the command's keeper; there has to be one. */
struct wire_message lone_hear(void);

/** Does `act` in a process of its own. @return its wait status; SIGALRM where it does not end. */
int lone_apart(void (*act)(void));

#endif

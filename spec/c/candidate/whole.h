/**
 * A candidate with all that it needs of a runtime, on a clock that stands still: its oracle is a
 * few words of Lua, its keeper is the test. What it does is written down line by line: what it
 * calls, what it tells, what its keeper hears.
 */
#ifndef CROWN_SPEC_WHOLE_H
#define CROWN_SPEC_WHOLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "candidate/candidate.h"
#include "candidate/state.h"
#include "process/wire.h"

#define S NS_PER_S

struct whole {
    struct candidate_env env;
    struct candidate_config config; /* of the next whole_elect */
    struct candidate *candidate;    /* the last one */
    int supervisor, keeper;         /* the test's ends of the lines */
};

extern struct whole whole;

/** cmocka's set-up and teardown. The config is that of a plain election, `a` of the node `one`. */
int whole_open(void **state);
int whole_close(void **state);

/** @return options of a command, of the candidate that is made with them. */
struct child_options *whole_command(void);

/** What the oracle, or a handler, does: Lua in a function of its arguments, `return 'granted', 10,
 * 30, 7`. `wait(seconds)` waits. Until then it returns nothing.
 * The oracle's state is the global `state`. */
void whole_does(const char *kind, const char *lua);

/** Makes a candidate of the config. @return it; the caller frees it. */
struct candidate *whole_new(void);

/** Makes whole.candidate of the config, and starts it. */
void whole_elect(void);

/** Lets time pass, and all happen that is due. */
void whole_pass(int64_t ns);

/** @return how many calls of a function metrics count. */
unsigned whole_calls(const char *function);

/** The keeper of the command says this. */
void whole_keeper_says(enum wire_type type, struct wire_message message);

/** What was written down since the last time has to be this, line by line. Events stand there as in
 * the log, without what is the same in all: name=a node=one oracle=words. The instants that a
 * keeper hears are in seconds from now; SELF is this process. */
#define assert_did(...)                                                                            \
    whole_assert_did(__FILE__, __LINE__, (const char *const[]){__VA_ARGS__, NULL})
void whole_assert_did(const char *file, int line, const char *const *lines);

/** From now on nothing is written down: thousands of candidates would say too much. */
void whole_quiet(void);

/** Forgets what was written down. */
void whole_skip(void);

#endif

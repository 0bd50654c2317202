/**
 * A supervisor whose kernel and runtime are the test, on a clock that stands still. What it does is
 * written down line by line: what it starts, kills and says, and for how long it waits. Its table
 * of keepers, what it takes for a request, and how it cleans up are the program's own.
 */
#ifndef CROWN_SPEC_WHOLE_SUPERVISOR_H
#define CROWN_SPEC_WHOLE_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "notes.h"
#include "process/wire.h"

#define START_NS (1000 * NS_PER_S)
#define WHOLE_RUNTIME 200 /* the next ones are 201, 202 */
#define WHOLE_KEEPER 300  /* the next ones are 301, 302 */
#define WHOLE_SPARE 400

struct whole_supervisor {
    int64_t heartbeat_timeout_ns;
    bool no_runtime;    /* it cannot be forked */
    bool no_keeper;     /* nor can a keeper */
    bool deaf;          /* the runtime's line has no room */
    unsigned orphans;   /* that are there still */
    pid_t unkillable;   /* one of them; 0: none */
    int64_t lasted_ns;  /* for how long the last runtime has worked */
    int64_t silence_ns; /* when the watchdog wants to look again; TIME_NEVER: need not */
    bool wills;         /* there is a will, which a store reads until the test says otherwise */
    bool init;          /* it is process 1, from now on */
    bool full;          /* the table of keepers */
    bool no_signals;    /* the kernel has no descriptor for them */
    bool no_null;       /* /dev/null cannot be opened */
    bool terminal;      /* it was started from one, which a standard stream is */
    int spare;          /* the line to the keeper that is ready */
    const char *held;   /* what the runtime did that was killed; "": none was */
};

extern struct whole_supervisor whole_supervisor;

/** cmocka's set-up and teardown. */
int whole_supervisor_open(void **state);
int whole_supervisor_close(void **state);
#define WHOLE_TEST(name)                                                                           \
    cmocka_unit_test_setup_teardown(name, whole_supervisor_open, whole_supervisor_close)

void whole_supervisor_starts(void);
/** The same, with a runtime that is to be replaced when it dies; and what that did is forgotten. */
void whole_supervisor_starts_armed(void);
void runtime_says(struct wire_message message);
/** The same, and the supervisor has no turn before the next thing happens. */
void runtime_said(struct wire_message message);
void runtime_hangs_up(void);
void terminal_hangs_up(void);
/** What a will went to has read it. */
void store_closes(void);
/** It asks for a keeper. */
void runtime_starts_child(uint64_t id);
/** SIGCHLD comes with it. @param status as waitpid(2) has it */
void somebody_dies(pid_t pid, int status);
void signal_comes(int signal);
void time_passes(int64_t ns);
/** It is awakened, and nothing has happened. */
void supervisor_wakes(void);
/** @return its exit code; fails the test while it has none. */
int supervisor_exit_code(void);

#define assert_did(...)                                                                            \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){__VA_ARGS__, NULL})
#define assert_did_nothing()                                                                       \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){NULL})

#endif

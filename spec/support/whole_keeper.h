/**
 * A keeper whose kernel, runtime and warden are the test, on a clock that stands still. What it
 * does is written down line by line: whom it tells what, whom it kills, what its timers are set to.
 * Instants are in seconds from the start.
 */
#ifndef CROWN_SPEC_WHOLE_KEEPER_H
#define CROWN_SPEC_WHOLE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "notes.h"
#include "process/child_spec.h"
#include "process/wire.h"
#include "whole_process.h"

struct whole_keeper {
    struct child_spec spec; /* of the next child; plain, with a lease of 10, 12 and 20 s */
    int streams[3];         /* what the child is given as streams and locks: the keeper's own */
    bool terminal;          /* standard input is one */
    pid_t foreground;       /* its group */
    pid_t group;            /* the keeper's */
    const char *children;   /* the warden's, as /proc shows them; NULL: it cannot be read */
    bool warden_is_dead;
    bool no_timer, no_warden;    /* the kernel has none */
    bool says_exited_as_it_dies; /* the warden: after the keeper has looked for a word of it */
    bool runtime_has_left;
    int line, block; /* descriptors of the keeper's: to its warden, the child's description, */
    int list,
        orders; /* the last list of children, and where a child comes from to one that waits */
};

extern struct whole_keeper whole_keeper;

/** cmocka's set-up and teardown. */
int whole_keeper_open(void **state);
int whole_keeper_close(void **state);
#define WHOLE_TEST(name)                                                                           \
    cmocka_unit_test_setup_teardown(name, whole_keeper_open, whole_keeper_close)

/** The supervisor forks a keeper for the child. */
void whole_keeper_starts(void);
/** The supervisor forks one ahead, which has a warden that is ready. */
void whole_keeper_is_ready(void);
/** The supervisor gives that one the child; with `count` descriptors of those that there are. */
void whole_keeper_is_given_the_child(unsigned count);
/** The supervisor closes the line to it. */
void whole_keeper_is_of_no_use(void);

void runtime_says(struct wire_message message);
void runtime_leaves(void);
void warden_hangs_up(void);
void warden_says(struct wire_message message);
/** SIGCHLD comes with it. */
void warden_dies(void);
/** @param code as siginfo has it: SI_KERNEL, SI_USER */
void signal_comes(int signal, int code);
void time_passes(int64_t ns);
/** It is awakened, and nothing has happened. */
void keeper_wakes(void);

#define assert_did(...)                                                                            \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){__VA_ARGS__, NULL})
#define assert_did_nothing()                                                                       \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){NULL})

#endif

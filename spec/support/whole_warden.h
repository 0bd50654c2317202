/**
 * A warden whose kernel and keeper are the test, on a clock that stands still. What it does is
 * written down line by line: what its keeper hears, whom it kills, when its timer ends it. Instants
 * are in seconds from the start.
 */
#ifndef CROWN_SPEC_WHOLE_WARDEN_H
#define CROWN_SPEC_WHOLE_WARDEN_H

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#include "notes.h"
#include "process/child_spec.h"
#include "process/warden.h"
#include "whole_process.h"

struct whole_warden {
    struct child_spec spec; /* of the child; plain */
    struct warden_note note;
    int given[4];           /* what the child is given, streams and then locks, which are open */
    int fork_error;         /* the kernel forks no process for this reason */
    bool no_signals;        /* nor makes a signalfd */
    bool no_namespace;      /* nor lets it in */
    int start_error;        /* nor starts the child */
    const char *start_text; /* in these words; NULL: those of the error */
    bool keeper_dies;       /* while the child starts */
    bool keeper_leaves;     /* as the child starts, or the next process is reaped */
    bool child_is_dead;     /* as /proc shows it */
    int status;             /* of the child, as /proc shows it */
    int keeper_end, line;   /* of the warden's line: the keeper's in the warden, and its own */
};

extern struct whole_warden whole_warden;

/** cmocka's set-up and teardown. */
int whole_warden_open(void **state);
int whole_warden_close(void **state);
#define WARDEN_TEST(name)                                                                          \
    cmocka_unit_test_setup_teardown(name, whole_warden_open, whole_warden_close)

/** The child is given two streams and a lock. */
void with_streams_and_a_lock(void);
/** Its keeper forks it for the child. */
void whole_warden_starts(void);
/** Its keeper forks it ahead, without a child. */
void whole_warden_is_ready(void);
/** And gives it the child, with `count` descriptors: the spec, and what that names. */
void whole_warden_is_given_the_child(unsigned count);
/** Or a description of it that cannot be read. */
void whole_warden_is_given_nonsense(void);
/** The same as its keeper sees it. @return as warden_start */
pid_t whole_warden_is_forked(const struct child_spec *spec, int *keeper_end,
                             struct crown_error *err);

void keeper_says(struct wire_message message);
void keeper_hangs_up(void);
void signal_comes(int signal);
/** It can be reaped; nothing else happens. */
void dies(pid_t pid, int status);
/** The child's descriptor says that it is dead. */
void child_is_seen_to_be_dead(void);
void warden_wakes(void);

/* What it does mostly, step by step. */
#define IS_FORKED "is forked, which is noted", "keeps 1 descriptors", "is on time"
#define IS_BOUND "is told of its parent's death by 9", "takes orphans in (1)"
#define OUTLIVES_ITS_KEEPER "dies at 18", "is told of its parent's death by 18"
#define SAYS_SO "keeper hears started pid=400", "forgets the description"
#define WATCHES "watches child", "gives its stack back"
#define ENDS_ITS_TREE "kills the tree to its end, nobody last", "ends with 0"

#define assert_did(...)                                                                            \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){__VA_ARGS__, NULL})
#define assert_did_nothing()                                                                       \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){NULL})

#endif

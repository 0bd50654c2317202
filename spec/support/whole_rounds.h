/**
 * Processes that the test has made up, for rounds of SIGKILL: who is whose child, who may be
 * killed, who is dead. A process that is killed is dead when the killer has waited; its children
 * are the killer's then. What the killer does is written down line by line.
 */
#ifndef CROWN_SPEC_WHOLE_ROUNDS_H
#define CROWN_SPEC_WHOLE_ROUNDS_H

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#include "notes.h"

#define ROUNDS_KILLER 1000
#define ROUNDS_MOST 100 /* processes */

struct whole_being {
    pid_t pid, parent;
    int thread;  /* of the parent's, which has forked it */
    bool dead;   /* and not reaped */
    bool dying;  /* until the killer waits */
    int refuses; /* a signal, with this errno; 0: none */
    bool held;   /* by who traces it: it is never reaped */
    bool hidden; /* /proc does not show it */
};

struct whole_rounds {
    struct whole_being beings[ROUNDS_MOST];
    unsigned count;
    bool no_descriptors;      /* of processes */
    int descriptors_refuse;   /* a signal, with this errno; 0: none */
    pid_t listed;             /* a child of the killer's, by a list that is a moment old; 0: none */
    pid_t comes_as_one_looks; /* a child that the killer has when it looks again; 0: none */
    bool lists_are_cut;       /* there is no room for the killer's own */
    void (*waited)(unsigned times);
    int open; /* descriptors and folders */
};

extern struct whole_rounds whole_rounds;

/** cmocka's set-up and teardown, which wants all to be closed. */
int whole_rounds_open(void **state);
int whole_rounds_close(void **state);
#define ROUNDS_TEST(name)                                                                          \
    cmocka_unit_test_setup_teardown(name, whole_rounds_open, whole_rounds_close)

/** Makes a process, a child of that one's first thread. */
struct whole_being *has(pid_t parent, pid_t pid);
struct whole_being *being(pid_t pid);

#define assert_did(...)                                                                            \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){__VA_ARGS__, NULL})
#define assert_did_nothing()                                                                       \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){NULL})

#endif

/**
 * What becomes a child, in a kernel that is the test: each call is written down, line by line, and
 * any of them can fail.
 */
#ifndef CROWN_SPEC_WHOLE_SPAWN_H
#define CROWN_SPEC_WHOLE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "notes.h"

#define SPAWN_PARENT 200
#define SPAWN_CHILD 400
#define SPAWN_GROUP 150 /* the parent's */
#define SPAWN_NULL 50   /* the first descriptor of /dev/null */

struct whole_spawn {
    const char *refused; /* a call that fails; NULL: none */
    int error;           /* with this errno */
    bool starts;         /* execvp succeeds */
    bool parent_dies;    /* before the child asks */
    bool terminal;       /* standard input is one */
    pid_t foreground;    /* its group */
    rlim_t limit;        /* of descriptors */
    int taken_from;      /* descriptors from here on are in use; 0: none are */
    size_t stack;        /* how large it was */
    char *const *around; /* the environment in which the program was looked up */
};

extern struct whole_spawn whole_spawn;

/** cmocka's set-up. */
int whole_spawn_open(void **state);
#define SPAWN_TEST(name) cmocka_unit_test_setup(name, whole_spawn_open)

#define assert_did(...)                                                                            \
    notes_assert(__FILE__, __LINE__, STDERR_FILENO, (const char *const[]){__VA_ARGS__, NULL})

#endif

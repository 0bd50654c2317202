/* How a process becomes a child, call by call; what a real child finds is in child_test. */
#include "process/spawn.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../support/whole_spawn.h"

#define STACK_LEAST (256u << 10)

extern char **environ;

static char *const argv[] = {"app", "-x", NULL};
static char *const envp[] = {"A=b", NULL};
static const gid_t groups[] = {7, 8};
static const int given[] = {60, 61, 62, 63, 64};

static struct child_spec plain(void)
{
    return (struct child_spec){.argv = argv, .envp = envp, .label = "a"};
}

/* All that there is. */
static struct child_spec full(void)
{
    struct child_spec spec = plain();
    spec.stdio[0] = CHILD_STDIO_FD;
    spec.stdio_fd[0] = 1;
    spec.stdio[1] = CHILD_STDIO_NULL;
    spec.stdio[2] = CHILD_STDIO_FD;
    spec.stdio_fd[2] = 2;
    spec.hold_fd[0] = 3;
    spec.hold_fd[1] = 4;
    spec.hold_count = 2;
    spec.terminal = true;
    spec.set_ids = true;
    spec.uid = 5;
    spec.gid = 6;
    spec.groups = groups;
    spec.group_count = 2;
    spec.cwd = "/srv";
    return spec;
}

static struct crown_error err;
static int error;

static pid_t spawn(struct child_spec spec)
{
    char **own = environ;
    error = 0;
    err.message[0] = '\0';
    const pid_t pid = spawn_child(&spec, given, &error, &err);
    assert_ptr_equal(environ, own);
    return pid;
}

#define BEGINS "has ordinary priority", "moves 0 to group 0"
#define BEGINS_ALONE BEGINS, "closes all others at the exec"
#define IS_BOUND "dies by 9 with its parent"
#define EXECUTES "blocks 0 signals", "executes app -x, each signal by default"
#define HAS_STARTED "gives the stack back"
#define FAILS "ends with 127", "gives the stack back", "reaps 400"

static void has_a_clean_world(void **state)
{
    (void)state;
    assert_int_equal(spawn(plain()), SPAWN_CHILD);
    assert_did(BEGINS_ALONE, IS_BOUND, EXECUTES, HAS_STARTED);
    assert_ptr_equal(whole_spawn.around, envp); /* its PATH counts */
    assert_int_equal(whole_spawn.stack, STACK_LEAST + 2 * sizeof(char *));
}

static void has_what_its_description_says(void **state)
{
    (void)state;
    assert_int_equal(spawn(full()), SPAWN_CHILD);
    assert_did(BEGINS, "has 61 as stream 0", "opens /dev/null", "has 50 as stream 1",
               "has 62 as stream 2", "holds 63 from 100 on", "holds 64 from 100 on",
               "closes all others at the exec", "keeps 100 at the exec", "keeps 100 at the exec",
               "blocks 1 signals more, SIGTTOU", "gives the terminal of stream 0 to group 400",
               "has 2 groups, first 7", "has group 6 6 6", "is user 5 5 5", "is in /srv", IS_BOUND,
               EXECUTES, HAS_STARTED);
}

/* A list of arguments for a shell goes there, a pointer for each, and the stack is aligned. */
static void has_a_stack_for_its_arguments(void **state)
{
    static char *many[1002];
    struct child_spec spec = plain();
    (void)state;
    for (unsigned i = 0; i < 1001; i++)
        many[i] = "app";
    spec.argv = many;
    assert_int_equal(spawn(spec), SPAWN_CHILD);
    assert_int_equal(whole_spawn.stack, STACK_LEAST + 1000 * sizeof(char *));
}

/* --- descriptors that hold a lock */

static void holds_locks_as_far_up_as_it_may(void **state)
{
    static const struct {
        rlim_t limit;
        const char *first;
    } cases[] = {{102, "holds 63 from 100 on"}, {101, "holds 63 from 99 on"},
                 {6, "holds 63 from 4 on"},     {5, "holds 63 from 3 on"},
                 {2, "holds 63 from 3 on"},     {RLIM_INFINITY, "holds 63 from 100 on"}};
    struct child_spec spec = plain();
    (void)state;
    spec.hold_fd[0] = 3;
    spec.hold_fd[1] = 3;
    spec.hold_count = 2;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char kept[40];
        whole_spawn.limit = cases[i].limit;
        assert_int_equal(spawn(spec), SPAWN_CHILD);
        (void)snprintf(kept, sizeof(kept), "keeps %d at the exec", atoi(cases[i].first + 14));
        assert_did(BEGINS, cases[i].first, cases[i].first, "closes all others at the exec", kept,
                   kept, IS_BOUND, EXECUTES, HAS_STARTED);
    }
}

static void holds_locks_lower_where_those_are_taken(void **state)
{
    struct child_spec spec = plain();
    (void)state;
    spec.hold_fd[0] = 3;
    spec.hold_count = 1;
    whole_spawn.taken_from = 90;
    assert_int_equal(spawn(spec), SPAWN_CHILD);
    assert_did(BEGINS, "holds 63 from 100 on", "holds 63 from 3 on",
               "closes all others at the exec", "keeps 3 at the exec", IS_BOUND, EXECUTES,
               HAS_STARTED);
    whole_spawn.refused = "getrlimit";
    whole_spawn.limit = 20;
    assert_int_equal(spawn(spec), SPAWN_CHILD);
    assert_did(BEGINS, "holds 63 from 100 on", "holds 63 from 3 on",
               "closes all others at the exec", "keeps 3 at the exec", IS_BOUND, EXECUTES,
               HAS_STARTED);
    whole_spawn.taken_from = 3;
    assert_int_equal(spawn(spec), -1);
    assert_int_equal(error, EMFILE);
    assert_string_equal(err.message, "run app: cannot keep its lock open (ulimit -n may be too "
                                     "low): Too many open files (ulimit -n, LimitNOFILE=)");
    assert_did(BEGINS, "holds 63 from 100 on", "holds 63 from 3 on", FAILS);
}

/* --- the terminal */

static void takes_the_terminal_from_its_own_program_only(void **state)
{
    struct child_spec spec = plain();
    (void)state;
    spec.terminal = true;
    whole_spawn.foreground = 77; /* a shell's */
    assert_int_equal(spawn(spec), SPAWN_CHILD);
    assert_did(BEGINS_ALONE, IS_BOUND, EXECUTES, HAS_STARTED);
    whole_spawn.foreground = SPAWN_GROUP;
    whole_spawn.terminal = false;
    assert_int_equal(spawn(spec), SPAWN_CHILD);
    assert_did(BEGINS_ALONE, IS_BOUND, EXECUTES, HAS_STARTED);
}

/* --- what fails */

/* In a user namespace nobody may change groups: then they stay. */
static void keeps_its_groups_where_it_may_not_change_them(void **state)
{
    struct child_spec spec = plain();
    (void)state;
    spec.set_ids = true;
    spec.groups = groups;
    whole_spawn.refused = "setgroups";
    whole_spawn.error = EPERM;
    assert_int_equal(spawn(spec), SPAWN_CHILD);
    assert_did(BEGINS_ALONE, "has 0 groups, first 7", "has group 0 0 0", "is user 0 0 0", IS_BOUND,
               EXECUTES, HAS_STARTED);
}

static void does_not_start_without_what_it_needs(void **state)
{
    static const struct {
        const char *refused, *message;
    } cases[] = {
        {"open", "run app: cannot set up its standard streams: Input/output error"},
        {"dup2", "run app: cannot set up its standard streams: Input/output error"},
        {"fcntl",
         "run app: cannot keep its lock open (ulimit -n may be too low): Input/output error"},
        {"tcsetpgrp", "run app: cannot take the terminal: Input/output error"},
        {"setgroups", "run app: cannot change to its user: Input/output error"},
        {"setresgid", "run app: cannot change to its user: Input/output error"},
        {"setresuid", "run app: cannot change to its user: Input/output error"},
        {"chdir", "run app: cannot change to /srv: Input/output error"},
        {"prctl", "run app: cannot outlive its parent: Input/output error"},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        whole_spawn.refused = cases[i].refused;
        assert_int_equal(spawn(full()), -1);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(error, EIO);
    }
}

static void says_so_where_it_has_failed(void **state)
{
    struct child_spec spec = plain();
    (void)state;
    spec.cwd = "/srv";
    whole_spawn.refused = "chdir";
    assert_int_equal(spawn(spec), -1);
    assert_did(BEGINS_ALONE, "is in /srv", FAILS);
    whole_spawn.refused = NULL;
    whole_spawn.parent_dies = true;
    assert_int_equal(spawn(plain()), -1);
    assert_did(BEGINS_ALONE, IS_BOUND, FAILS);
    whole_spawn.parent_dies = false;
    whole_spawn.starts = false;
    whole_spawn.error = ENOENT;
    assert_int_equal(spawn(plain()), -1);
    assert_string_equal(err.message, "run app: No such file or directory");
    assert_int_equal(error, ENOENT);
    assert_did(BEGINS_ALONE, IS_BOUND, EXECUTES, FAILS);
}

static void cannot_be_forked(void **state)
{
    (void)state;
    whole_spawn.refused = "clone";
    whole_spawn.error = EAGAIN;
    assert_int_equal(spawn(plain()), -1);
    assert_did("gives the stack back");
    assert_int_equal(error, EAGAIN);
    assert_string_equal(
        err.message,
        "run app: fork: no more processes are allowed (ulimit -u, TasksMax, pids.max)");
    whole_spawn.refused = "mmap";
    whole_spawn.error = ENOMEM;
    assert_int_equal(spawn(plain()), -1);
    assert_did(NULL);
    assert_int_equal(error, ENOMEM);
    assert_string_equal(err.message, "run app: fork: Cannot allocate memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPAWN_TEST(has_a_clean_world),
        SPAWN_TEST(has_what_its_description_says),
        SPAWN_TEST(has_a_stack_for_its_arguments),
        SPAWN_TEST(holds_locks_as_far_up_as_it_may),
        SPAWN_TEST(holds_locks_lower_where_those_are_taken),
        SPAWN_TEST(takes_the_terminal_from_its_own_program_only),
        SPAWN_TEST(keeps_its_groups_where_it_may_not_change_them),
        SPAWN_TEST(does_not_start_without_what_it_needs),
        SPAWN_TEST(says_so_where_it_has_failed),
        SPAWN_TEST(cannot_be_forked),
    };
    return cmocka_run_group_tests_name("a process that becomes a child", tests, NULL, NULL);
}

/**
 * What the user said about a child, as plain data: validated in Lua, read by the bindings, kept by
 * the candidate, and turned into a child_spec at each start, with the election's environment.
 */
#ifndef CROWN_CHILD_OPTIONS_H
#define CROWN_CHILD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/child_spec.h"

enum child_output {
    CHILD_OUTPUT_INHERIT,
    CHILD_OUTPUT_NULL,
    CHILD_OUTPUT_LOG, /* each line becomes a log line */
    CHILD_OUTPUT_PATH,
};

/** The most fields of a user's own in a line of the log. */
#define CHILD_LOG_FIELDS 4

struct child_options {
    char **argv; /* NULL-terminated, owned */
    char *
        *env; /* "KEY=value", NULL-terminated, owned: additions to the runtime's own environment */
    char *cwd;
    bool set_ids;
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    size_t group_count;
    enum child_output output[3]; /* stdin: INHERIT, NULL or PATH */
    char *path[3];
    int stop_signal;
    int64_t watchdog_ns; /* how often it has to say WATCHDOG=1; 0: it may be silent */
    enum child_isolation isolation;
    bool terminal;
    bool escalate;
    bool told;          /* SIGUSR1 says that it leads, as in signal mode */
    bool signalled;     /* signal mode: it lives from term to term */
    bool fence;         /* in signal mode: killed at the deadline all the same */
    bool decides;       /* its exit code is the program's */
    char **log_fields;  /* of each line that goes to the log: a name, its value, …, NULL; owned */
    size_t keep_output; /* bytes of the end of what goes to the log that are kept; 0: none */
    char *epoch_file;   /* in signal mode: what it reads its epoch from; NULL: none */
};

/** Frees a NULL-terminated array of strings that were allocated one by one. */
void strings_free(char **strings);

void child_options_free(struct child_options *options);

/**
 * Makes the environment of a child: the runtime's own, less what is not the child's business
 * (CROWN_ORACLE may hold a password), plus the options' additions, plus `extra` (NULL-terminated
 * "KEY=value").
 * @return a NULL-terminated array for strings_free, or NULL when memory is out.
 */
char **child_environment(const struct child_options *options, const char *const *extra);

#endif

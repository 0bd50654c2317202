/**
 * crown.exec: a command run to its end under a keeper, its output collected. Inside a term it ends
 * with the term: the keeper has the term's deadline.
 */
#ifndef CROWN_CHILD_EXEC_H
#define CROWN_CHILD_EXEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "child/children.h"
#include "loop/op.h"
#include "process/child_spec.h"

struct exec;

/** Bytes of stdout and of stderr kept; what is more is dropped, and `truncated` says so. */
#define EXEC_OUTPUT_MAX (1u << 20)

/** The executions that one owner has started; `empty` is called whenever the last of them is gone.
 */
struct exec_group {
    struct list members;
    void (*empty)(struct exec_group *group);
};

struct exec_result {
    int status; /* as waitpid(2) gives it */
    bool started;
    bool truncated;
    const char *text[2]; /* stdout, stderr; valid until exec_free */
    size_t size[2];
    char error[256]; /* why it could not be started */
};

/**
 * Starts a command.
 * @param spec argv, envp, cwd and instants as wanted; standard streams are set here.
 * @param group the executions of the term that this one belongs to, or NULL.
 * @param input what the command reads, or NULL for nothing; copied.
 * @return the execution, whose op completes when the whole tree is gone; or NULL with `err`.
 */
struct exec *exec_start(struct children *children, struct child_spec *spec,
                        struct exec_group *group, const char *input, size_t size,
                        struct crown_error *err);
struct op *exec_op(struct exec *exec);
const struct exec_result *exec_result(const struct exec *exec);

/** Kills all of the group; they leave it as their trees are gone. */
void exec_kill_all(struct exec_group *group);

/** The owner of the group is freed: what is left of it belongs to nobody. */
void exec_disown(struct exec_group *group);

/** The term of `group` has new instants. */
void exec_set_deadlines(struct exec_group *group, int64_t stop_at_ns, int64_t kill_at_ns,
                        int64_t deadline_ns);

/** Kills what still runs, and frees once it is gone. */
void exec_free(struct exec *exec);

#endif

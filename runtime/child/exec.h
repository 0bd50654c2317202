/**
 * crown.exec: a command run to its end under a keeper, its output collected. It is a member of the
 * scope that starts it: inside a term it ends with the term, and its keeper has the term's
 * deadline.
 */
#ifndef CROWN_CHILD_EXEC_H
#define CROWN_CHILD_EXEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/scope.h"
#include "child/children.h"
#include "loop/op.h"
#include "process/child_spec.h"

struct exec;

/** Bytes of stdout and of stderr kept; what is more is dropped, and `truncated` says so. */
#define EXEC_OUTPUT_MAX (1u << 20)

struct exec_result {
    int status; /* as waitpid(2) gives it */
    bool started;
    bool truncated;
    bool timed_out;      /* its keeper killed it at its own time-out */
    const char *text[2]; /* stdout, stderr; valid until exec_free */
    size_t size[2];
    char error[256]; /* why it could not be started */
};

/**
 * Starts a command.
 * @param scope that it belongs to: it has the scope's instants, follows them as they move, keeps
 * open what the scope holds, and has not left before its whole tree is gone.
 * @param spec argv, envp and cwd as wanted; the rest is set here.
 * @param kill_at_ns when it is killed, whatever the scope allows.
 * @param input what the command reads, or NULL for nothing; copied.
 * @return the execution, whose op completes when the whole tree is gone; or NULL with `err`.
 */
struct exec *exec_start(struct children *children, struct scope *scope, struct child_spec *spec,
                        int64_t kill_at_ns, const char *input, size_t size,
                        struct crown_error *err);
struct op *exec_op(struct exec *exec);
const struct exec_result *exec_result(const struct exec *exec);

/** Kills what still runs, and frees once it is gone. */
void exec_free(struct exec *exec);

#endif

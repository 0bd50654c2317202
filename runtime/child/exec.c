#include "child/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "child/capture.h"
#include "child/child.h"

struct exec_output {
    struct capture capture;
    char *text;
    size_t size, room;
};

struct exec {
    struct child child;
    struct scope_member member;
    int64_t kill_at_ns; /* its own time-out */
    struct exec_output output[2];
    struct exec_result result;
    struct op op;
    bool killed; /* the keeper was told */
    bool exited;
    bool abandoned; /* nobody waits any more: free it when the tree is gone */
};

static void exec_destroy(struct exec *exec)
{
    for (int i = 0; i < 2; i++) {
        capture_finish(&exec->output[i].capture);
        free(exec->output[i].text);
    }
    free(exec);
}

/* Keeps up to EXEC_OUTPUT_MAX; takes, and so drops, everything: a command that writes more must not
 * block. */
static size_t collect(struct capture *capture, const char *bytes, size_t size)
{
    struct exec_output *output = container_of(capture, struct exec_output, capture);
    struct exec *exec = capture->context;
    size_t keep = size < EXEC_OUTPUT_MAX - output->size ? size : EXEC_OUTPUT_MAX - output->size;
    if (output->size + keep > output->room) {
        size_t room = output->room == 0 ? CAPTURE_CHUNK : output->room * 2;
        char *grown = realloc(output->text, room);
        if (grown != NULL) {
            output->text = grown;
            output->room = room;
        } else {
            keep = output->room - output->size;
        }
    }
    if (keep < size)
        exec->result.truncated = true;
    if (keep > 0)
        memcpy(output->text + output->size, bytes, keep);
    output->size += keep;
    return size;
}

static void exec_gone(struct exec *exec, const struct wire_message *message)
{
    if (!exec->exited)
        exec->result.status = message->status;
    if (!exec->result.started && exec->result.error[0] == '\0')
        (void)snprintf(exec->result.error, sizeof(exec->result.error), "it ended before it began");
    scope_leave(&exec->member);
    if (exec->abandoned) {
        exec_destroy(exec);
        return;
    }
    for (int i = 0; i < 2; i++) {
        capture_finish(&exec->output[i].capture);
        exec->result.text[i] = exec->output[i].text;
        exec->result.size[i] = exec->output[i].size;
    }
    op_complete(&exec->op);
}

/* Of the keeper's two reasons to kill, the time-out and the term's end, the earlier one. */
static bool is_own_timeout(const struct exec *exec)
{
    return !exec->killed && exec->kill_at_ns <= scope_instants(exec->member.scope)->kill_at_ns;
}

static void exec_event(struct child *child, const struct wire_message *message)
{
    struct exec *exec = container_of(child, struct exec, child);
    switch ((enum wire_type)message->type) {
    case WIRE_STARTED:
        exec->result.started = true;
        break;
    case WIRE_START_FAILED:
        (void)snprintf(exec->result.error, sizeof(exec->result.error), "%s", message->text);
        break;
    case WIRE_EXITED:
        exec->exited = true;
        exec->result.status = message->status;
        break;
    case WIRE_KILLED:
        exec->result.timed_out = !exec->exited && is_own_timeout(exec);
        break;
    case WIRE_UNKILLABLE:
        log_warn("process %d of a command cannot be killed (%s): it must be ended by hand",
                 message->pid, child_unkillable_reason(message));
        break;
    case WIRE_END_KEEPER:
        log_warn("the keeper of a command was late: killed it, and the command with it");
        break;
    case WIRE_GONE:
        exec_gone(exec, message);
        break;
    default:
        break;
    }
}

/* A memfd rather than a pipe: nobody has to feed it, whatever its size. */
static int open_input(const char *input, size_t size, struct crown_error *err)
{
    int fd = memfd_create("crown-exec-stdin", MFD_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "make the command's standard input");
    for (size_t done = 0; done < size;) {
        ssize_t wrote = write(fd, input + done, size - done);
        if (wrote < 0) {
            int saved = errno;
            (void)close(fd);
            return error_set_errno(err, saved, "make the command's standard input");
        }
        done += (size_t)wrote;
    }
    if (lseek(fd, 0, SEEK_SET) < 0) {
        int saved = errno;
        (void)close(fd);
        return error_set_errno(err, saved, "make the command's standard input");
    }
    return fd;
}

static int start(struct exec *exec, struct children *children, struct child_spec *spec,
                 const char *input, size_t size, struct crown_error *err)
{
    int fds[3] = {-1, -1, -1};
    int result = -1;
    spec->stdio[0] = input != NULL ? CHILD_STDIO_FD : CHILD_STDIO_NULL;
    if (input != NULL) {
        fds[0] = open_input(input, size, err);
        if (fds[0] < 0)
            return -1;
    }
    for (int i = 0; i < 2; i++) {
        fds[i + 1] = capture_open(&exec->output[i].capture, children->loop, collect, exec, err);
        if (fds[i + 1] < 0)
            goto done;
        spec->stdio[i + 1] = CHILD_STDIO_FD;
    }
    memcpy(spec->stdio_fd, fds, sizeof(fds));
    result = child_start(&exec->child, children, spec, err);
done:
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]); /* the command has its own copy */
    return result;
}

static void kill_now(struct exec *exec)
{
    if (exec->killed)
        return;
    exec->killed = true;
    child_stop(&exec->child, clock_boottime_ns());
}

/* The waiting task was cancelled or timed out; its exec_free follows when Lua collects the handle,
 * but the command must not run on until then. */
static void exec_cancelled(struct op *op)
{
    kill_now(container_of(op, struct exec, op));
}

static void scope_ended(struct scope_member *member)
{
    kill_now(container_of(member, struct exec, member));
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void set_instants(struct scope_member *member, const struct scope_instants *instants)
{
    struct exec *exec = container_of(member, struct exec, member);
    child_set_deadline(&exec->child, instants->stop_at_ns,
                       earlier(instants->kill_at_ns, exec->kill_at_ns), instants->deadline_ns);
}

static const struct scope_kind exec_kind = {
    .name = "exec", .end = scope_ended, .set_instants = set_instants};

static void apply_scope(const struct scope *scope, int64_t kill_at_ns, struct child_spec *spec)
{
    const struct scope_instants *instants = scope_instants(scope);
    spec->stop_signal = SIGTERM;
    spec->stop_at_ns = instants->stop_at_ns;
    spec->kill_at_ns = earlier(instants->kill_at_ns, kill_at_ns);
    spec->deadline_ns = instants->deadline_ns;
    spec->hold_count = 0;
    child_spec_hold(spec, scope_hold(scope));
}

struct exec *exec_start(struct children *children, struct scope *scope, struct child_spec *spec,
                        int64_t kill_at_ns, const char *input, size_t size, struct crown_error *err)
{
    struct exec *exec = calloc(1, sizeof(*exec));
    if (exec == NULL) {
        (void)error_set(err, ERROR_MEMORY, "run %s: out of memory", spec->argv[0]);
        return NULL;
    }
    exec->child.event = exec_event;
    exec->kill_at_ns = kill_at_ns;
    op_init(&exec->op, children->loop, exec_cancelled);
    apply_scope(scope, kill_at_ns, spec);
    bool too_late = scope_instants(scope)->kill_at_ns <= loop_now(children->loop);
    if (too_late || !scope_enter(scope, &exec->member, &exec_kind)) {
        (void)error_set(err, ERROR_CLOSED, "run %s: what started it is over", spec->argv[0]);
        exec_destroy(exec);
        return NULL;
    }
    if (start(exec, children, spec, input, size, err) < 0) {
        scope_leave(&exec->member);
        exec_destroy(exec);
        return NULL;
    }
    return exec;
}

struct op *exec_op(struct exec *exec)
{
    return &exec->op;
}

const struct exec_result *exec_result(const struct exec *exec)
{
    return &exec->result;
}

void exec_free(struct exec *exec)
{
    if (exec == NULL)
        return;
    if (!exec->child.active) {
        exec_destroy(exec);
        return;
    }
    exec->abandoned = true;
    op_cancel(&exec->op);
    kill_now(exec);
}

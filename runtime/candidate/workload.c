/* The child that a candidate runs: the leader's or the follower's, one at a time. */
#include "candidate/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/container.h"
#include "host/host.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_EXECUTABLE 126

static const char *const stream_names[] = {"stdin", "stdout", "stderr"};

static const char *role_name(enum election_role role)
{
    return role == ELECTION_ROLE_LEADER ? "leader" : "follower";
}

const struct child_options *child_options_of(const struct candidate *candidate,
                                             const struct candidate_child *child)
{
    return candidate->child_options[child->role];
}

static void emit(const struct candidate_child *child, enum telemetry_event event,
                 struct log_field *fields, unsigned count)
{
    const struct candidate *candidate = child->candidate;
    fields[count++] = log_string("role", role_name(child->role));
    if (child->process.pid != 0)
        fields[count++] = log_integer("pid", child->process.pid);
    /* A command whose end is the program's needs no warning of it. */
    if (child->exited && child_options_of(candidate, child)->decides)
        telemetry_emit_at(host_telemetry(candidate->host), LOG_INFO, candidate, event, fields,
                          count);
    else
        telemetry_emit(host_telemetry(candidate->host), candidate, event, fields, count);
}

/* Each line that the child writes is a line of the log. */
static size_t log_line(struct capture *capture, const char *bytes, size_t size)
{
    const struct candidate_child *child = capture->context;
    size_t taken = 0;
    while (taken < size) {
        const char *start = bytes + taken;
        const char *end = memchr(start, '\n', size - taken);
        if (end == NULL && (capture->open && size < CAPTURE_CHUNK))
            break;
        size_t length = end != NULL ? (size_t)(end - start) : size - taken;
        char line[CAPTURE_CHUNK + 1];
        memcpy(line, start, length);
        line[length] = '\0';
        const struct log_field fields[] = {
            log_string("name", child->candidate->name),
            log_string("stream", stream_names[capture - child->capture]),
        };
        log_event(LOG_INFO, line, fields, 2);
        taken += end != NULL ? length + 1 : length;
    }
    return taken;
}

static void emit_exit(const struct candidate_child *child, enum telemetry_event event)
{
    int status = child->status;
    struct log_field fields[4];
    unsigned count = 0;
    if (WIFEXITED(status))
        fields[count++] = log_integer("code", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        fields[count++] = log_integer("signal", WTERMSIG(status));
    emit(child, event, fields, count);
}

/* As a shell says it: 127 not found, 126 not to be executed, 128 + the signal. */
static int exit_code(const struct candidate_child *child)
{
    if (child->unstartable)
        return child->status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    return WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status) : WEXITSTATUS(child->status);
}

static void child_gone(struct candidate_child *child, const struct wire_message *message)
{
    struct candidate *candidate = child->candidate;
    if (!child->exited && !child->unstartable)
        child->status = message->status;
    for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO; stream++)
        capture_finish(&child->capture[stream]);
    if (!child->unstartable)
        emit_exit(child, TELEMETRY_CHILD_STOPPED);
    if (child_options_of(candidate, child)->decides)
        host_set_code(candidate->host, exit_code(child));
    loop_at_cancel(host_loop(candidate->host), &child->signal_timer);
    const struct election_event event = {
        .type = ELECTION_EVENT_CHILD_GONE,
        .child = {.failed = child->status != 0 || child->unstartable,
                  .unstartable = child->unstartable},
    };
    bool standing = candidate->standing == child;
    if (standing)
        candidate->standing = NULL;
    else
        candidate->child = NULL;
    free(child);
    if (standing)
        standing_gone(candidate);
    else
        candidate_feed(candidate, &event);
}

static void child_event(struct process *process, const struct wire_message *message)
{
    struct candidate_child *child = container_of(process, struct candidate_child, process);
    struct candidate *candidate = child->candidate;
    struct log_field fields[4];
    switch ((enum wire_type)message->type) {
    case WIRE_STARTED:
        emit(child, TELEMETRY_CHILD_STARTED, fields, 0);
        if (child_options_of(candidate, child)->signalled && candidate->child == child)
            standing_tell(child, SIGUSR1);
        candidate_feed_type(candidate, ELECTION_EVENT_CHILD_STARTED);
        break;
    case WIRE_START_FAILED:
        child->unstartable = true;
        child->status = message->error;
        fields[0] = log_string("error", message->text);
        emit(child, TELEMETRY_CHILD_EXITED, fields, 1);
        break;
    case WIRE_EXITED:
        child->exited = true;
        child->status = message->status;
        if (!child->stop_requested)
            emit_exit(child, TELEMETRY_CHILD_EXITED);
        break;
    case WIRE_KILLED:
        emit(child, TELEMETRY_CHILD_KILLED, fields, 0);
        break;
    case WIRE_GONE:
        child_gone(child, message);
        break;
    default:
        break;
    }
}

/* Opens what the child's streams need. Fills `close_fds` with what is ours to close after the
 * start. */
static int open_streams(struct candidate *candidate, const struct child_options *options,
                        struct child_spec *spec, int *close_fds, unsigned *close_count,
                        struct crown_error *err)
{
    for (int stream = 0; stream < 3; stream++) {
        int fd = -1;
        switch (options->output[stream]) {
        case CHILD_OUTPUT_INHERIT:
            spec->stdio[stream] = CHILD_STDIO_INHERIT;
            continue;
        case CHILD_OUTPUT_NULL:
            spec->stdio[stream] = CHILD_STDIO_NULL;
            continue;
        case CHILD_OUTPUT_LOG:
            fd = capture_open(&candidate->child->capture[stream], host_loop(candidate->host),
                              log_line, candidate->child, err);
            break;
        case CHILD_OUTPUT_PATH:
            fd = open(options->path[stream],
                      (stream == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND) | O_CLOEXEC, 0666);
            if (fd < 0)
                (void)error_set_errno(err, errno, "open %s for the child's %s",
                                      options->path[stream], stream_names[stream]);
            break;
        }
        if (fd < 0)
            return -1;
        spec->stdio[stream] = CHILD_STDIO_FD;
        spec->stdio_fd[stream] = fd;
        close_fds[(*close_count)++] = fd;
    }
    return 0;
}

static char **make_environment(struct candidate *candidate, const struct child_options *options,
                               enum election_role role, uint64_t epoch)
{
    char election[160], node[300], role_text[32], epoch_text[48];
    (void)snprintf(election, sizeof(election), "CROWN_ELECTION=%s", candidate->name);
    (void)snprintf(node, sizeof(node), "CROWN_NODE=%s", host_node(candidate->host));
    (void)snprintf(role_text, sizeof(role_text), "CROWN_ROLE=%s", role_name(role));
    (void)snprintf(epoch_text, sizeof(epoch_text), "CROWN_EPOCH=%" PRIu64, epoch);
    const char *const extra[] = {election, node, role_text, epoch_text, NULL};
    return child_environment(options, extra);
}

/* Whether the term's deadline is its death: not of a command that is only told. */
static bool is_killed(const struct child_options *options)
{
    return !options->signalled || options->fence;
}

static int start(struct candidate *candidate, const struct child_options *options,
                 const struct election_action *action, struct crown_error *err)
{
    uint64_t epoch = action->role == ELECTION_ROLE_LEADER ? action->epoch : candidate->leader_epoch;
    char **environment = make_environment(candidate, options, action->role, epoch);
    if (environment == NULL)
        return error_set(err, ERROR_MEMORY, "start the child: out of memory");
    struct child_spec spec = {
        .argv = options->argv,
        .envp = environment,
        .cwd = options->cwd,
        .label = candidate->name,
        .set_ids = options->set_ids,
        .uid = options->uid,
        .gid = options->gid,
        .groups = options->groups,
        .group_count = options->group_count,
        .stop_signal = options->stop_signal,
        .lease_signal = options->signalled ? SIGUSR2 : 0,
        .terminal = options->terminal,
        .escalate = options->escalate,
        .isolation = options->isolation,
        .stop_at_ns = action->stop_at_ns,
        .kill_at_ns = is_killed(options) ? action->kill_at_ns : TIME_NEVER,
        .deadline_ns = is_killed(options) ? action->deadline_ns : TIME_NEVER,
    };
    /* A command that lives on after the term must not keep its lock. */
    if (candidate->hold_fd >= 0 && action->role == ELECTION_ROLE_LEADER && is_killed(options))
        spec.hold_fd[spec.hold_count++] = candidate->hold_fd;
    int close_fds[3];
    unsigned close_count = 0;
    int result = open_streams(candidate, options, &spec, close_fds, &close_count, err);
    if (result == 0)
        result = process_start(&candidate->child->process, candidate->host, &spec, err);
    for (unsigned i = 0; i < close_count; i++)
        (void)close(close_fds[i]); /* the process has its own copy */
    child_environment_free(environment);
    return result;
}

void child_start(struct candidate *candidate, const struct election_action *action)
{
    if (standing_take_up(candidate, action))
        return;
    struct candidate_child *child = calloc(1, sizeof(*child));
    struct crown_error err = {0};
    if (child != NULL) {
        candidate->child = child;
        child->candidate = candidate;
        child->role = action->role;
        child->process.event = child_event;
        for (int stream = 0; stream < 3; stream++)
            child->capture[stream].context = child;
        if (start(candidate, candidate->child_options[action->role], action, &err) == 0)
            return;
    } else {
        (void)error_set(&err, ERROR_MEMORY, "start the child: out of memory");
    }
    const struct log_field fields[] = {log_string("error", err.message),
                                       log_string("role", role_name(action->role))};
    telemetry_emit(host_telemetry(candidate->host), candidate, TELEMETRY_CHILD_EXITED, fields, 2);
    child_free(candidate);
    const struct election_event event = {.type = ELECTION_EVENT_CHILD_GONE,
                                         .child = {.failed = true, .unstartable = true}};
    candidate_feed(candidate, &event);
}

void child_stop(struct candidate *candidate, int64_t kill_at_ns)
{
    if (candidate->child == NULL)
        return;
    candidate->child->stop_requested = true;
    if (standing_leave(candidate, kill_at_ns))
        return;
    process_stop(&candidate->child->process, kill_at_ns);
}

void child_set_deadline(struct candidate *candidate, const struct election_action *action)
{
    struct candidate_child *child = candidate->child;
    if (child == NULL || child->role != ELECTION_ROLE_LEADER)
        return;
    bool killed = is_killed(child_options_of(candidate, child));
    process_set_deadline(&child->process, action->stop_at_ns,
                         killed ? action->kill_at_ns : TIME_NEVER,
                         killed ? action->deadline_ns : TIME_NEVER);
}

/* Only for a child that never started, or when the whole runtime goes down: its keepers then kill.
 */
static void drop(struct candidate_child *child)
{
    if (child == NULL)
        return;
    loop_at_cancel(host_loop(child->candidate->host), &child->signal_timer);
    if (child->process.active) {
        loop_unwatch(&child->process.watch);
        list_remove(&child->process.link);
        keeper_link_close(&child->process.keeper);
    }
    for (int stream = 0; stream < 3; stream++)
        capture_finish(&child->capture[stream]);
    free(child);
}

void child_free(struct candidate *candidate)
{
    drop(candidate->child);
    drop(candidate->standing);
    candidate->child = candidate->standing = NULL;
}

bool candidate_signal_child(struct candidate *candidate, int signal)
{
    if (candidate->child == NULL || candidate->child->process.pid == 0)
        return false;
    process_signal(&candidate->child->process, signal);
    return true;
}

#include "candidate/workload.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/container.h"
#include "candidate/candidates.h"
#include "candidate/env.h"
#include "candidate/epoch_file.h"
#include "candidate/signal_mode.h"
#include "candidate/state.h"
#include "candidate/status.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_EXECUTABLE 126
#define STOP_TIMEOUT_DEFAULT_NS (5 * NS_PER_S)

static const char *role_name(enum election_role role)
{
    return role == ELECTION_ROLE_LEADER ? "leader" : "follower";
}

static void emit(const struct workload *workload, enum telemetry_event event,
                 struct log_field *fields, unsigned count)
{
    const struct candidate *candidate = workload->candidate;
    fields[count++] = log_string("role", role_name(workload->role));
    if (workload->child.pid != 0)
        fields[count++] = log_integer("pid", workload->child.pid);
    /* A command whose end is the program's needs no warning of it. */
    if (workload->exited && workload_options(workload)->decides)
        telemetry_emit_at(candidate->env->telemetry, LOG_INFO, &candidate->source, event, fields,
                          count);
    else
        telemetry_emit(candidate->env->telemetry, &candidate->source, event, fields, count);
}

/* Some process of the tree lives on as another user: the lease is not released, at most left to run
 * out. */
static void emit_unkillable(const struct workload *workload, const struct wire_message *message)
{
    const struct candidate *candidate = workload->candidate;
    const struct log_field fields[] = {
        log_string("role", role_name(workload->role)),
        log_integer("pid", message->pid),
        log_string("error", child_unkillable_reason(message)),
    };
    telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_CHILD_UNKILLABLE,
                   fields, 3);
}

static void emit_exit(const struct workload *workload, enum telemetry_event event)
{
    int status = workload->status;
    struct log_field fields[4];
    unsigned count = 0;
    if (WIFEXITED(status))
        fields[count++] = log_integer("code", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        fields[count++] = log_integer("signal", WTERMSIG(status));
    emit(workload, event, fields, count);
}

/* An end that was asked for, by the signals that we send for it, is none of the command's failures.
 */
static int orderly(int code)
{
    return code == 128 + SIGINT || code == 128 + SIGTERM ? 0 : code;
}

/* As a shell says it: 127 not found, 126 not to be executed, 128 + the signal. */
static int exit_code(const struct workload *workload)
{
    if (workload->unstartable)
        return workload->status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    int code = WIFSIGNALED(workload->status) ? 128 + WTERMSIG(workload->status)
                                             : WEXITSTATUS(workload->status);
    return workload->candidate->election.stop ? orderly(code) : code;
}

/* Its warden tells how it ended, if it did so by itself. Where nobody told, or where the keeper
 * stopped it before, its keeper or its warden has ended it. */
static bool was_ended(const struct workload *workload)
{
    return !workload->unstartable && (workload->stopped || workload->killed || !workload->exited);
}

/* Not by us, unless the user asked for its end. */
static bool workload_ended_by_itself(const struct workload *workload)
{
    return (!workload->stop_requested && !was_ended(workload)) ||
           workload->candidate->election.stop;
}

/* Nobody has asked for its end, and no time was up. */
static void emit_lost_with_keeper(const struct workload *workload,
                                  const struct wire_message *message)
{
    struct log_field fields[3] = {log_string("error", message->text)};
    if (!workload->unstartable && !workload->exited && !workload->killed &&
        !workload->stop_requested && message->text[0] != '\0')
        emit(workload, TELEMETRY_CHILD_KILLED, fields, 1);
}

/* It hangs, as far as is known. Its restart policy says what follows. */
static void fell_silent(struct silence *silence)
{
    struct workload *workload = container_of(silence, struct workload, silence);
    const struct candidate *candidate = workload->candidate;
    const int64_t patience_ns = candidate->election.stop_timeout_ns;
    struct log_field fields[3];
    char text[96];
    if (workload->stop_requested || workload->stopped || workload->killed)
        return;
    (void)snprintf(text, sizeof(text), "it has not said WATCHDOG=1 for %.1f s",
                   (double)silence->allowed_ns / NS_PER_S);
    fields[0] = log_string("error", text);
    emit(workload, TELEMETRY_CHILD_SILENT, fields, 1);
    child_stop(&workload->child,
               clock_add_ns(loop_now(candidate->env->loop),
                            patience_ns > 0 ? patience_ns : STOP_TIMEOUT_DEFAULT_NS));
}

static void workload_gone(struct workload *workload, const struct wire_message *message)
{
    struct candidate *candidate = workload->candidate;
    silence_end(&workload->silence);
    if (!workload->exited && !workload->unstartable)
        workload->status = message->status;
    streams_finish(&workload->streams);
    if (workload->role == ELECTION_ROLE_LEADER && !workload->unstartable) {
        candidate->commands->ended = true;
        candidate->commands->status = workload->status;
    }
    emit_lost_with_keeper(workload, message);
    if (!workload->unstartable)
        emit_exit(workload, TELEMETRY_CHILD_STOPPED);
    if (workload_options(workload)->decides && workload_ended_by_itself(workload))
        candidate->env->exit_code(candidate->env, exit_code(workload));
    loop_at_cancel(candidate->env->loop, &workload->signal_timer);
    const struct election_event event = {
        .type = ELECTION_EVENT_CHILD_GONE,
        .child = {.failed = workload->status != 0 || workload->unstartable || was_ended(workload),
                  .unstartable = workload->unstartable,
                  .killed = was_ended(workload)},
    };
    if (workload->role == ELECTION_ROLE_LEADER)
        epoch_file_remove(workload_options(workload)->epoch_file);
    bool standing = candidate->commands->standing == workload;
    if (standing)
        candidate->commands->standing = NULL;
    else
        candidate->commands->workload = NULL;
    candidates_touch(candidate->env->candidates, candidate);
    scope_leave(&workload->member);
    free(workload);
    /* One that ends between terms was told to stop working: the next win starts it anew. */
    if (!standing)
        candidate_feed(candidate, &event);
}

/* Whether it is told by SIGUSR1 that it leads. Only who asks for it is: many programs take that
 * signal for something else, and Node.js opens a port for its debugger. */
static bool is_told(const struct workload *workload)
{
    const struct child_options *options = workload_options(workload);
    return workload->role == ELECTION_ROLE_LEADER && (options->signalled || options->told);
}

static void workload_event(struct child *child, const struct wire_message *message)
{
    struct workload *workload = container_of(child, struct workload, child);
    struct candidate *candidate = workload->candidate;
    struct log_field fields[4];
    switch ((enum wire_type)message->type) {
    case WIRE_STARTED:
        emit(workload, TELEMETRY_CHILD_STARTED, fields, 0);
        if (workload_options(workload)->decides)
            candidate->env->exit_code(candidate->env, 0); /* no longer that of not having begun */
        if (candidate->commands->workload == workload && is_told(workload))
            signal_mode_tell(workload, SIGUSR1);
        candidate_feed_type(candidate, ELECTION_EVENT_CHILD_STARTED);
        break;
    case WIRE_START_FAILED:
        workload->unstartable = true;
        workload->status = message->error;
        fields[0] = log_string("error", message->text);
        emit(workload, TELEMETRY_CHILD_EXITED, fields, 1);
        break;
    case WIRE_EXITED:
        workload->exited = true;
        workload->status = message->status;
        if (!workload->stop_requested && !workload->stopped && !workload->killed)
            emit_exit(workload, TELEMETRY_CHILD_EXITED);
        break;
    case WIRE_SIGNALLED:
        workload->stopped = true;
        signal_mode_sent(workload, message->signal);
        break;
    case WIRE_INTERRUPTED: /* the supervisor is told as well, for all the others */
        candidate_feed_type(candidate, ELECTION_EVENT_STOP);
        break;
    case WIRE_KILLED:
        workload->killed = true;
        emit(workload, TELEMETRY_CHILD_KILLED, fields, 0);
        break;
    case WIRE_UNKILLABLE:
        emit_unkillable(workload, message);
        break;
    case WIRE_END_KEEPER:
        emit(workload, TELEMETRY_CHILD_KEEPER_LATE, fields, 0);
        break;
    case WIRE_GONE:
        workload_gone(workload, message);
        break;
    default:
        break;
    }
}

static char **make_environment(struct candidate *candidate, const struct child_options *options,
                               enum election_role role, uint64_t epoch)
{
    const struct silence *silence = &candidate->commands->workload->silence;
    char election[160], node[300], role_text[32], epoch_text[48];
    (void)snprintf(election, sizeof(election), "CROWN_ELECTION=%s", candidate->name);
    (void)snprintf(node, sizeof(node), "CROWN_NODE=%s", candidate_node(candidate));
    (void)snprintf(role_text, sizeof(role_text), "CROWN_ROLE=%s", role_name(role));
    (void)snprintf(epoch_text, sizeof(epoch_text), "CROWN_EPOCH=%" PRIu64, epoch);
    const char *const watched = silence->loop != NULL ? silence->variable : NULL;
    const char *const extra[] = {election,   node,    role_text,
                                 epoch_text, watched, watched != NULL ? silence->interval : NULL,
                                 NULL};
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
    struct silence *silence = &candidate->commands->workload->silence;
    silence->fell_silent = fell_silent;
    if (silence_begin(silence, candidate->env->loop, options, err) < 0)
        return -1;
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
        .ctrl_c_ends = !options->decides,
        .escalate = options->escalate,
        .isolation = options->isolation,
        .stop_at_ns = action->stop_at_ns,
        .kill_at_ns = is_killed(options) ? action->kill_at_ns : TIME_NEVER,
        .deadline_ns = is_killed(options) ? action->deadline_ns : TIME_NEVER,
    };
    /* A command that lives on after the term must not keep its lock. */
    if (action->role == ELECTION_ROLE_LEADER && is_killed(options))
        child_spec_hold(&spec, &candidate->term->hold);
    struct workload *workload = candidate->commands->workload;
    bool leads = action->role == ELECTION_ROLE_LEADER;
    int result = streams_open(&workload->streams, candidate->env->loop, candidate->name, options,
                              leads ? &candidate->commands->tail : NULL, &spec, err);
    if (result == 0)
        result = child_start(&workload->child, candidate->env->children, &spec, err);
    streams_hand_over(&spec);
    strings_free(environment);
    return result;
}

/* The scope that it belongs to has ended: a term whose time is over, or an election that finishes
 * while its command lives on between terms. */
static void end(struct scope_member *member)
{
    struct workload *workload = container_of(member, struct workload, member);
    const struct candidate *candidate = workload->candidate;
    int64_t patience_ns = candidate->election.stop_timeout_ns;
    int64_t now_ns = loop_now(candidate->env->loop);
    workload->stop_requested = true;
    if (candidate->commands->standing != workload)
        child_stop(&workload->child, now_ns);
    else
        child_stop(&workload->child,
                   clock_add_ns(now_ns, patience_ns > 0 ? patience_ns : STOP_TIMEOUT_DEFAULT_NS));
}

static void set_instants(struct scope_member *member, const struct scope_instants *instants)
{
    struct workload *workload = container_of(member, struct workload, member);
    bool killed = is_killed(workload_options(workload));
    if (workload->fenced)
        return;
    child_set_deadline(&workload->child, instants->stop_at_ns,
                       killed ? instants->kill_at_ns : TIME_NEVER,
                       killed ? instants->deadline_ns : TIME_NEVER);
}

static const struct scope_kind child_kind = {
    .name = "child", .end = end, .set_instants = set_instants};

static void destroy(struct workload *workload)
{
    if (workload == NULL)
        return;
    loop_at_cancel(workload->candidate->env->loop, &workload->signal_timer);
    silence_end(&workload->silence);
    child_let_go(&workload->child);
    streams_finish(&workload->streams);
    scope_leave(&workload->member);
    free(workload);
}

/* The same command, a new term: it is told, and its child need not start. */
static void take_up(struct candidate *candidate)
{
    set_instants(&candidate->commands->workload->member, scope_instants(candidate->term->scope));
    signal_mode_tell(candidate->commands->workload, SIGUSR1);
    candidate_feed_type(candidate, ELECTION_EVENT_CHILD_STARTED);
}

/* The command would read an older epoch, or none: it is not told of this term, which ends. One that
 * lives on from another goes on living. */
static bool has_epoch(struct candidate *candidate, uint64_t epoch)
{
    struct crown_error err;
    const char *path = candidate->commands->options[ELECTION_ROLE_LEADER]->epoch_file;
    if (epoch_file_write(path, epoch, &err) == 0)
        return true;
    log_error("%s: the command is not told that it leads: %s", candidate->name, err.message);
    const struct election_event event = {.type = ELECTION_EVENT_CHILD_GONE,
                                         .child = {.failed = true, .untold = true}};
    candidate_feed(candidate, &event);
    return false;
}

static void report_failure(struct candidate *candidate, enum election_role role,
                           const char *problem)
{
    const struct log_field fields[] = {log_string("error", problem),
                                       log_string("role", role_name(role))};
    if (candidate->commands->options[role]->decides)
        candidate->env->exit_code(candidate->env, EXIT_NOT_EXECUTABLE);
    telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_CHILD_EXITED, fields,
                   2);
    const struct election_event event = {.type = ELECTION_EVENT_CHILD_GONE,
                                         .child = {.failed = true, .unstartable = true}};
    candidate_feed(candidate, &event);
}

void workload_expect(const struct candidate *candidate)
{
    const struct child_options *options = candidate_options(candidate, ELECTION_ROLE_LEADER);
    if (options != NULL && options->isolation == CHILD_ISOLATION_TREE &&
        candidate->commands->standing == NULL)
        link_prepare(candidate->env->children->link);
}

void workload_start(struct candidate *candidate, const struct election_action *action)
{
    bool leads = action->role == ELECTION_ROLE_LEADER;
    if (leads && !has_epoch(candidate, action->epoch))
        return;
    if (leads && signal_mode_take_up(candidate)) {
        take_up(candidate);
        return;
    }
    struct workload *workload = calloc(1, sizeof(*workload));
    if (workload == NULL)
        abort(); /* crash-only, as every allocation of a few pages */
    struct crown_error err = {0};
    candidate->commands->workload = workload;
    workload->candidate = candidate;
    workload->role = action->role;
    workload->child.event = workload_event;
    bool entered = scope_enter(leads ? candidate->term->scope : candidate_scope(candidate),
                               &workload->member, &child_kind);
    assert(entered);
    if (start(candidate, candidate->commands->options[action->role], action, &err) == 0)
        return;
    candidate->commands->workload = NULL;
    destroy(workload);
    report_failure(candidate, action->role, err.message);
}

void workload_stop(struct candidate *candidate, int64_t kill_at_ns)
{
    if (candidate->commands->workload == NULL)
        return;
    candidate->commands->workload->stop_requested = true;
    if (signal_mode_leave(candidate, kill_at_ns))
        return;
    child_stop(&candidate->commands->workload->child, kill_at_ns);
}

bool workload_signal(struct candidate *candidate, int signal)
{
    const struct commands *commands = candidate->commands;
    if (commands == NULL || commands->workload == NULL || commands->workload->child.pid == 0)
        return false;
    child_signal(&commands->workload->child, signal);
    return true;
}

void workload_let_go(struct candidate *candidate)
{
    if (candidate->commands == NULL)
        return;
    struct workload *workload = candidate->commands->workload;
    struct workload *standing = candidate->commands->standing;
    candidate->commands->workload = candidate->commands->standing = NULL;
    destroy(workload);
    destroy(standing);
}

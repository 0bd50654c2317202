#include "lone.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "candidate/deadmen.h"
#include "candidate/term.h"
#include "candidate/workload.h"

#define PATIENCE_S 20 /* far more than anything here takes */

struct lone lone;

static char *const no_words[] = {NULL};
static char *const words[] = {(char *)"the-command", NULL};

static void describe(const struct telemetry_source *source, struct telemetry_subject *subject)
{
    (void)source;
    subject->name = "lone";
}

int lone_open(void **state)
{
    (void)state;
    int ends[2];
    lone = (struct lone){.supervisor = -1, .keeper = -1};
    if (wire_pair(ends, NULL) < 0)
        return -1;
    lone.supervisor = ends[1];
    lone.options = (struct child_options){
        .argv = (char **)words, .env = (char **)no_words, .stop_signal = SIGTERM};
    lone.env =
        (struct candidate_env){.loop = loop_new(NULL), .deadmen = deadmen_new(NULL), .node = "one"};
    lone.env.telemetry = telemetry_new("one", lone.env.loop);
    struct link *link = link_new(ends[0], NULL);
    if (lone.env.loop == NULL || lone.env.deadmen == NULL || lone.env.telemetry == NULL ||
        link == NULL)
        return -1;
    children_init(&lone.children, lone.env.loop, link);
    lone.env.children = &lone.children;
    lone.commands.options[ELECTION_ROLE_LEADER] = &lone.options;
    lone.commands.options[ELECTION_ROLE_FOLLOWER] = &lone.options;
    lone.candidate = (struct candidate){
        .env = &lone.env,
        .name = "lone",
        .source.describe = describe,
        .finished = true, /* the core hears nothing */
        .scope = scope_new(NULL, NULL),
        .leader_epoch = 6,
        .commands = &lone.commands,
    };
    return lone.candidate.scope != NULL ? term_init(&lone.candidate) : -1;
}

int lone_close(void **state)
{
    (void)state;
    workload_let_go(&lone.candidate);
    term_forget(&lone.candidate);
    term_free(&lone.candidate);
    scope_free(lone.candidate.scope);
    link_free(lone.children.link);
    telemetry_free(lone.env.telemetry);
    deadmen_free(lone.env.deadmen);
    loop_free(lone.env.loop);
    (void)close(lone.supervisor);
    if (lone.keeper >= 0)
        (void)close(lone.keeper);
    return 0;
}

void lone_hear_start(void)
{
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned count = 0;
    assert_int_equal(wire_receive(lone.supervisor, &message, fds, &count, NULL), 1);
    assert_int_equal(message.type, WIRE_START_KEEPER);
    assert_true(count >= 2);
    assert_int_equal(child_spec_read(fds[1], &lone.spec, NULL), 0);
    lone.keeper = fds[0];
    for (unsigned i = 1; i < count; i++)
        assert_int_equal(close(fds[i]), 0);
}

void lone_start(enum election_role role, int64_t stop_ns, int64_t kill_ns, int64_t deadline_ns)
{
    const struct election_action action = {.role = role,
                                           .epoch = 7,
                                           .stop_at_ns = stop_ns,
                                           .kill_at_ns = kill_ns,
                                           .deadline_ns = deadline_ns};
    if (role == ELECTION_ROLE_LEADER)
        term_begin(&lone.candidate, action.epoch);
    workload_start(&lone.candidate, &action);
    lone_hear_start();
}

struct wire_message lone_hear(void)
{
    struct wire_message message;
    assert_int_equal(wire_receive(lone.keeper, &message, NULL, NULL, NULL), 1);
    return message;
}

int lone_apart(void (*act)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(PATIENCE_S);
        if (lone_open(NULL) < 0)
            _exit(99);
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

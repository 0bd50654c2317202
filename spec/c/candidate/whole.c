#include "whole.h"

#include <fcntl.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../support/notes.h"
#include "base/log.h"
#include "candidate/deadmen.h"
#include "candidate/journal.h"
#include "candidate/starts.h"
#include "child/children.h"
#include "lua/vm.h"
#include "process/child_spec.h"

#define LINES_SIZE 16384 /* of what is logged between two looks */

struct whole whole;

static struct children children;
static bool quiet;                     /* nothing is written down */
static int log_fd = -1, error_fd = -1; /* where log lines go; the standard error stream itself */

/* --- what is written down */

/* This process may stand for a command, whose number each line ends with. */
static void name_self(char *line, size_t room)
{
    char number[16];
    int size = snprintf(number, sizeof(number), "%d", (int)getpid());
    char *at = line + strlen(line) - size;
    if (at > line && strcmp(at, number) == 0 && (at[-1] == '=' || at[-1] == ' '))
        (void)snprintf(at, room - (size_t)(at - line), "SELF");
}

static void add_line(const char *text)
{
    char line[LINES_SIZE];
    if (quiet)
        return;
    (void)snprintf(line, sizeof(line), "%s", text);
    name_self(line, sizeof(line));
    notes_add("%s", line);
}

/* Each election's own words are in each line of it. */
static void leave_out(char *line, const char *words)
{
    char *at = strstr(line, words);
    if (at != NULL)
        memmove(at, at + strlen(words), strlen(at + strlen(words)) + 1);
}

/* Without the time that each begins with. */
static void take_log(void)
{
    char text[LINES_SIZE], *rest = text, *line;
    ssize_t size = recv(log_fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    text[size > 0 ? size : 0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        leave_out(line, " name=a node=one");
        leave_out(line, " oracle=words");
        add_line(strchr(line, ' ') != NULL ? strchr(line, ' ') + 1 : line);
    }
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    take_log();
    add_line(text);
}

static const char *seconds_from(int64_t from_ns, int64_t at_ns, char text[32])
{
    if (at_ns == TIME_NEVER)
        return "never";
    (void)snprintf(text, 32, "%.0f", clock_seconds_from_ns(at_ns - from_ns));
    return text;
}

static void note_instants(const char *who, const char *what, int64_t stop_ns, int64_t kill_ns,
                          int64_t deadline_ns)
{
    char stop[32], kill[32], deadline[32];
    int64_t now_ns = clock_boottime_ns();
    note("%s hears %s stop=%s kill=%s deadline=%s", who, what, seconds_from(now_ns, stop_ns, stop),
         seconds_from(now_ns, kill_ns, kill), seconds_from(now_ns, deadline_ns, deadline));
}

static void hear_start(const int *fds, unsigned count)
{
    struct child_spec spec;
    assert_true(count >= 2);
    if (whole.keeper >= 0)
        (void)close(whole.keeper);
    whole.keeper = fds[0];
    assert_int_equal(child_spec_read(fds[1], &spec, NULL), 0);
    note_instants("supervisor", spec.argv[0], spec.stop_at_ns, spec.kill_at_ns, spec.deadline_ns);
    child_spec_release(&spec);
    for (unsigned i = 1; i < count; i++)
        (void)close(fds[i]);
}

static void hear_supervisor(void)
{
    struct wire_message message;
    int fds[WIRE_MAX_FDS];
    unsigned count = 0;
    while (wire_receive(whole.supervisor, &message, fds, &count, NULL) > 0) {
        if (message.type == WIRE_START_KEEPER)
            hear_start(fds, count);
        else
            note("supervisor hears %s", wire_type_name(message.type));
    }
}

static void hear_keeper(void)
{
    struct wire_message message;
    char kill[32];
    while (whole.keeper >= 0 && wire_receive(whole.keeper, &message, NULL, NULL, NULL) > 0) {
        if (message.type == WIRE_SET_DEADLINE)
            note_instants("keeper", "deadline", message.stop_at_ns, message.kill_at_ns,
                          message.deadline_ns);
        else if (message.type == WIRE_STOP_CHILD)
            note("keeper hears stop kill=%s",
                 seconds_from(clock_boottime_ns(), message.kill_at_ns, kill));
        else
            note("keeper hears %s %d", wire_type_name(message.type), message.signal);
    }
}

static void hear(void)
{
    take_log();
    hear_supervisor();
    hear_keeper();
}

void whole_quiet(void)
{
    log_set_level(LOG_ERROR);
    quiet = true;
}

void whole_skip(void)
{
    hear();
    notes_forget();
}

void whole_assert_did(const char *file, int line, const char *const *wanted)
{
    hear();
    notes_assert(file, line, error_fd, wanted);
}

/* --- the environment */

static void hold(struct candidate_env *env, bool on)
{
    (void)env;
    note(on ? "runtime is held" : "runtime is let go");
}

static void changed(struct candidate_env *env)
{
    (void)env;
    if (whole.candidate != NULL)
        note("shown %s, %u lead", candidate_phase_name(whole.candidate->shown_phase),
             candidates_leading(whole.env.candidates));
}

static void exit_code(struct candidate_env *env, int code)
{
    (void)env;
    note("exit code %d", code);
}

/* perform(object, kind, …): writes down what is asked, then does what the test said. */
static const char OBJECT[] =
    "local say, does = ..., {}\n"
    "local object = { state = {} }\n"
    "state = object.state\n"
    "function object.does(kind, text) does[kind] = assert(loadstring(text, '=test')) end\n"
    "function object.perform(self, kind, ...)\n"
    "  local words = { kind }\n"
    "  for i = 1, select('#', ...) do words[i + 1] = tostring((select(i, ...))) end\n"
    "  say(table.concat(words, ' '))\n"
    "  if does[kind] then return does[kind](...) end\n"
    "end\n"
    "return object\n";

static int object = LUA_NOREF;

static int say(lua_State *L)
{
    note("asks %s", lua_tostring(L, 1));
    return 0;
}

static int wait_seconds(lua_State *L)
{
    int64_t ns = clock_ns_from_seconds(luaL_checknumber(L, 1));
    return task_wait(L, NULL, loop_now(whole.env.loop) + ns, NULL);
}

static void make_object(lua_State *L)
{
    lua_register(L, "wait", wait_seconds);
    assert_int_equal(luaL_loadstring(L, OBJECT), 0);
    lua_pushcfunction(L, say);
    assert_int_equal(lua_pcall(L, 1, 1, 0), 0);
    object = luaL_ref(L, LUA_REGISTRYINDEX);
}

static int catch_log(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    log_fd = ends[0];
    error_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    log_set_level(LOG_DEBUG);
    log_set_format(LOG_TEXT);
    int result = error_fd >= 0 ? dup2(ends[1], STDERR_FILENO) : -1;
    (void)close(ends[1]);
    return result;
}

int whole_open(void **state)
{
    static const struct lua_module none[] = {{NULL, NULL}};
    int ends[2];
    (void)state;
    whole = (struct whole){.keeper = -1};
    quiet = false;
    struct candidate_env *env = &whole.env;
    if (wire_pair(ends, NULL) < 0 || catch_log() < 0)
        return -1;
    whole.supervisor = ends[1];
    env->node = "one";
    env->loop = loop_new(NULL);
    loop_set_virtual(env->loop, true);
    env->deadmen = deadmen_new(NULL);
    env->telemetry = telemetry_new("one", env->loop);
    env->journal = journal_open(memfd_create("journal", MFD_CLOEXEC), NULL);
    env->candidates = candidates_new();
    env->starts = starts_new(env);
    env->lua = lua_vm_new(env->loop, none, NULL, NULL);
    children_init(&children, env->loop, link_new(ends[0], NULL));
    env->children = &children;
    env->hold = hold;
    env->changed = changed;
    env->exit_code = exit_code;
    if (env->lua == NULL || env->journal == NULL || env->starts == NULL)
        return -1;
    make_object(lua_vm_state(env->lua));
    whole.config = (struct candidate_config){
        .name = "a",
        .oracle = "words",
        .store = "words://here",
        .election = {.retry_ns = 5 * S,
                     .stand_back_ns = 5 * S,
                     .ttl_ns = 30 * S,
                     .call_timeout_ns = 3 * S,
                     .lost_timeout_ns = 4 * S,
                     .monitor_leader = true,
                     .has_abdicate = true,
                     .restart_max = 3,
                     .restart_within_ns = 60 * S,
                     .restart_backoff_first_ns = S,
                     .restart_backoff_most_ns = 10 * S,
                     .timing = {.stop_timeout_ns = 2 * S, .real_time = true}},
    };
    whole_skip();
    return 0;
}

int whole_close(void **state)
{
    (void)state;
    (void)dup2(error_fd, STDERR_FILENO); /* first: what fails from here on has to be seen */
    log_set_level(LOG_ERROR);
    candidate_free(whole.candidate);
    (void)close(error_fd);
    (void)close(log_fd);
    starts_free(whole.env.starts);
    candidates_free(whole.env.candidates);
    link_free(children.link);
    lua_vm_free(whole.env.lua);
    telemetry_free(whole.env.telemetry);
    journal_close(whole.env.journal);
    deadmen_free(whole.env.deadmen);
    loop_free(whole.env.loop);
    (void)close(whole.supervisor);
    if (whole.keeper >= 0)
        (void)close(whole.keeper);
    return 0;
}

/* --- what a test does */

static char **one_word(const char *word)
{
    char **words = calloc(2, sizeof(*words));
    assert_non_null(words);
    if (word != NULL)
        words[0] = strdup(word);
    return words;
}

struct child_options *whole_command(void)
{
    struct child_options *options = calloc(1, sizeof(*options));
    assert_non_null(options);
    *options = (struct child_options){
        .argv = one_word("command"), .env = one_word(NULL), .stop_signal = SIGTERM};
    return options;
}

void whole_does(const char *kind, const char *lua)
{
    lua_State *L = lua_vm_state(whole.env.lua);
    lua_rawgeti(L, LUA_REGISTRYINDEX, object);
    lua_getfield(L, -1, "does");
    lua_pushstring(L, kind);
    lua_pushstring(L, lua);
    if (lua_pcall(L, 2, 0, 0) != 0)
        fail_msg("%s", lua_tostring(L, -1));
    lua_pop(L, 1);
}

struct candidate *whole_new(void)
{
    struct crown_error err = {0};
    lua_State *L = lua_vm_state(whole.env.lua);
    whole.config.election.has_child = whole.config.child != NULL;
    whole.config.election.has_follower_child = whole.config.follower_child != NULL;
    lua_rawgeti(L, LUA_REGISTRYINDEX, object);
    struct candidate *candidate = candidate_new(&whole.env, L, &whole.config, &err);
    if (candidate == NULL)
        fail_msg("%s", err.message);
    return candidate;
}

void whole_elect(void)
{
    whole.candidate = whole_new();
    candidate_start(whole.candidate);
    whole_pass(0);
}

void whole_pass(int64_t ns)
{
    loop_advance(whole.env.loop, ns);
    hear();
}

unsigned whole_calls(const char *function)
{
    const struct latency *latency = telemetry_latency(whole.env.telemetry);
    uint64_t count = 0;
    for (unsigned i = 0; i < LATENCY_FUNCTIONS; i++) {
        const struct latency_series *series = &latency->series[i];
        for (unsigned k = 0; k <= LATENCY_BOUNDS; k++)
            if (series->function != NULL && strcmp(series->function, function) == 0)
                count += series->counts[k];
    }
    return (unsigned)count;
}

void whole_keeper_says(enum wire_type type, struct wire_message message)
{
    const struct commands *commands = whole.candidate->commands;
    const struct workload *workload =
        commands->workload != NULL ? commands->workload : commands->standing;
    assert_non_null(workload);
    message.type = type;
    assert_int_equal(wire_send(whole.keeper, &message, NULL, 0, NULL), 0);
    struct loop_watch *watch = (struct loop_watch *)&workload->child.watch;
    watch->ready(watch, LOOP_READ);
    whole_pass(0);
}

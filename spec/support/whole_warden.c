#include "whole_warden.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "apart.h"
#include "process/pidns.h"
#include "process/plain_fork.h"
#include "process/process_stat.h"
#include "process/realtime.h"
#include "process/signals.h"
#include "process/spawn.h"

#include <setjmp.h>
#include <stddef.h>

#include <cmocka.h>

#define USER 1000
#define GROUP 100
#define DEAD_MOST 40

struct whole_warden whole_warden;

static struct {
    int keeper;     /* the test's copy of the keeper's end */
    int signals[2]; /* what the warden polls, and where the test writes */
    int child;      /* an eventfd in place of the child's descriptor */
    bool in_keeper; /* the fork is looked at from there */
    unsigned count, reaped;
    struct {
        pid_t pid;
        int status;
    } dead[DEAD_MOST];
} world;

int whole_warden_open(void **state)
{
    static char *const argv[] = {"app", NULL};
    static char *const envp[] = {NULL};
    (void)state;
    memset(&world, 0, sizeof(world));
    world.keeper = -1;
    whole_process_open(WHOLE_KEEPER);
    whole_warden = (struct whole_warden){
        .spec = {.argv = argv, .envp = envp, .label = "a", .stop_signal = SIGTERM},
        .note = {.deadline_ns = START_NS + 18 * NS_PER_S},
        .keeper_end = -1,
        .line = -1,
    };
    for (unsigned i = 0; i < 4; i++)
        whole_warden.given[i] = memfd_create("given", MFD_CLOEXEC);
    world.child = eventfd(0, EFD_CLOEXEC);
    return world.child < 0 || pipe2(world.signals, O_CLOEXEC | O_NONBLOCK) < 0 ? -1 : 0;
}

int whole_warden_close(void **state)
{
    (void)state;
    apart_close();
    const int all[] = {world.keeper,          world.signals[0],      world.signals[1],
                       world.child,           whole_warden.given[0], whole_warden.given[1],
                       whole_warden.given[2], whole_warden.given[3], whole_warden.line};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] > STDERR_FILENO)
            (void)close(all[i]); /* the warden has closed some */
    return 0;
}

void with_streams_and_a_lock(void)
{
    struct child_spec *spec = &whole_warden.spec;
    spec->stdio[0] = spec->stdio[2] = CHILD_STDIO_FD;
    spec->stdio_fd[0] = whole_warden.given[0];
    spec->stdio_fd[2] = whole_warden.given[1];
    spec->hold_fd[0] = whole_warden.given[2];
    spec->hold_count = 1;
}

static void run(void)
{
    static struct child_spec spec; /* which it releases */
    struct crown_error err;
    int end;
    spec = whole_warden.spec;
    (void)warden_start(&spec, whole_warden.given, &whole_warden.note, &end, &err);
}

static void run_without_child(void)
{
    struct crown_error err;
    int end;
    (void)warden_start(NULL, NULL, &whole_warden.note, &end, &err);
}

void whole_warden_starts(void)
{
    apart_begin(run);
}

void whole_warden_is_ready(void)
{
    apart_begin(run_without_child);
}

static void give(int block, unsigned count)
{
    const struct wire_message message = {.type = WIRE_START_CHILD};
    int fds[5] = {block};
    memcpy(fds + 1, whole_warden.given, sizeof(whole_warden.given));
    assert_true(block >= 0);
    assert_int_equal(__real_wire_send(world.keeper, &message, fds, count, NULL), 0);
    (void)close(block);
    apart_go_on();
}

void whole_warden_is_given_the_child(unsigned count)
{
    give(child_spec_write(&whole_warden.spec, NULL), count);
}

void whole_warden_is_given_nonsense(void)
{
    give(memfd_create("nonsense", MFD_CLOEXEC), 1);
}

pid_t whole_warden_is_forked(const struct child_spec *spec, int *keeper_end,
                             struct crown_error *err)
{
    world.in_keeper = true;
    return warden_start((struct child_spec *)spec, whole_warden.given, &whole_warden.note,
                        keeper_end, err);
}

void keeper_says(struct wire_message message)
{
    assert_int_equal(__real_wire_send(world.keeper, &message, NULL, 0, NULL), 0);
    apart_go_on();
}

static void keeper_leaves(void)
{
    (void)close(world.keeper);
    world.keeper = -1;
}

void keeper_hangs_up(void)
{
    keeper_leaves();
    apart_go_on();
}

void signal_comes(int signal)
{
    const struct signalfd_siginfo info = {.ssi_signo = (uint32_t)signal};
    assert_int_equal(write(world.signals[1], &info, sizeof(info)), sizeof(info));
    apart_go_on();
}

void dies(pid_t pid, int status)
{
    assert_true(world.count < DEAD_MOST);
    world.dead[world.count].pid = pid;
    world.dead[world.count++].status = status;
}

void child_is_seen_to_be_dead(void)
{
    assert_return_code(eventfd_write(world.child, 1), 0);
    apart_go_on();
}

void warden_wakes(void)
{
    apart_go_on();
}

/* --- the kernel */

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return WHOLE_KEEPER; /* asked before the fork */
}

uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return USER;
}

gid_t __wrap_getegid(void);
gid_t __wrap_getegid(void)
{
    return GROUP;
}

int __wrap_pidfd_open(pid_t pid, unsigned flags);
int __wrap_pidfd_open(pid_t pid, unsigned flags)
{
    notes_add("watches %s%s", whole_who(pid), flags == 0 ? "" : " in another way");
    return world.child;
}

int __wrap_signals_open(void);
int __wrap_signals_open(void)
{
    errno = EMFILE;
    return whole_warden.no_signals ? -1 : world.signals[0];
}

pid_t __wrap_plain_fork(unsigned long flags, pid_t *note);
pid_t __wrap_plain_fork(unsigned long flags, pid_t *note)
{
    notes_add("is forked%s%s",
              (flags & CLONE_NEWPID) != 0 ? " into a namespace"
              : flags == 0                ? ""
                                          : " into something else",
              note == &whole_warden.note.pid ? ", which is noted" : "");
    errno = whole_warden.fork_error;
    if (whole_warden.fork_error != 0)
        return -1;
    *note = WHOLE_WARDEN;
    return world.in_keeper ? WHOLE_WARDEN : 0;
}

/* --- the other parts of the program */

int __real_wire_pair(int ends[2], struct crown_error *err);
int __wrap_wire_pair(int ends[2], struct crown_error *err);
int __wrap_wire_pair(int ends[2], struct crown_error *err)
{
    const int made = __real_wire_pair(ends, err);
    if (!world.in_keeper)
        world.keeper =
            fcntl(ends[0], F_DUPFD_CLOEXEC, 3); /* keeper and warden are one process here */
    whole_warden.keeper_end = ends[0];
    whole_warden.line = ends[1];
    return made;
}

int __wrap_pidns_enter(uid_t uid, gid_t gid, struct crown_error *err);
int __wrap_pidns_enter(uid_t uid, gid_t gid, struct crown_error *err)
{
    if (whole_warden.no_namespace)
        return error_set(err, ERROR_SYSTEM, "no namespaces");
    notes_add("is in its namespace as %u:%u", uid, gid);
    return 0;
}

static bool is_the_same(int fd, int other)
{
    struct stat one, two;
    return fstat(fd, &one) == 0 && fstat(other, &two) == 0 && one.st_ino == two.st_ino;
}

pid_t __wrap_spawn_child(const struct child_spec *spec, const int *fds, int *error,
                         struct crown_error *err);
pid_t __wrap_spawn_child(const struct child_spec *spec, const int *fds, int *error,
                         struct crown_error *err)
{
    const bool streams = spec->stdio[0] == CHILD_STDIO_FD || spec->hold_count > 0;
    notes_add("starts %s%s", spec->argv[0],
              streams && is_the_same(fds[0], whole_warden.given[0]) ? " with what it was given"
                                                                    : "");
    if (whole_warden.keeper_dies)
        whole_process.parent = 1;
    if (whole_warden.keeper_leaves)
        keeper_leaves();
    if (whole_warden.start_error == 0)
        return WHOLE_CHILD;
    *error = whole_warden.start_error;
    return error_set(err, ERROR_SYSTEM, "run app: %s",
                     whole_warden.start_text != NULL ? whole_warden.start_text : strerror(*error));
}

pid_t __wrap_realtime_reap(int *status, int options, unsigned before);
pid_t __wrap_realtime_reap(int *status, int options, unsigned before)
{
    assert_int_equal(options & ~WUNTRACED, WNOHANG | __WALL);
    if (world.reaped == world.count)
        return 0;
    if (whole_warden.keeper_leaves)
        keeper_leaves();
    const pid_t pid = world.dead[world.reaped].pid;
    *status = world.dead[world.reaped++].status;
    notes_add("reaps %s%s, after %u", whole_who(pid),
              (options & WUNTRACED) != 0 ? ", dead or stopped" : "", before);
    return pid;
}

bool __wrap_process_is_dead(pid_t pid);
bool __wrap_process_is_dead(pid_t pid)
{
    assert_int_equal(pid, WHOLE_CHILD);
    return whole_warden.child_is_dead;
}

int __wrap_process_status(pid_t pid);
int __wrap_process_status(pid_t pid)
{
    assert_int_equal(pid, WHOLE_CHILD);
    return whole_warden.status;
}

void __real_child_spec_release(struct child_spec *spec);
void __wrap_child_spec_release(struct child_spec *spec);
void __wrap_child_spec_release(struct child_spec *spec)
{
    notes_add("forgets the description");
    __real_child_spec_release(spec);
}

void __wrap_stack_release(void);
void __wrap_stack_release(void)
{
    notes_add("gives its stack back");
}

void __wrap_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_log_warn(const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    notes_add("warns: %s", text);
}

int __wrap_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err);
int __wrap_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err)
{
    const int sent = __real_wire_send(fd, message, fds, nfds, err);
    if (sent == 0)
        whole_hear("keeper", message);
    return sent;
}

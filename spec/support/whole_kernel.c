#include "whole_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "apart.h"
#include "base/clock.h"
#include "process/deadman.h"
#include "process/keeper.h"
#include "process/rounds.h"
#include "process/signals.h"

#include <setjmp.h>
#include <stddef.h>

#include <cmocka.h>

#define TURNS_MOST 100 /* without a wait: more of them never end */

struct whole_keeper whole_keeper;
struct whole_kernel kernel;

/* --- what is written down */

static const char *seconds(int64_t at_ns, char text[32])
{
    if (at_ns == TIME_NEVER)
        return "never";
    (void)snprintf(text, 32, "%g", clock_seconds_from_ns(at_ns - START_NS));
    return text;
}

static const char *who(pid_t pid)
{
    static char number[16];
    switch (pid < 0 ? -pid : pid) {
    case 0:
        return "nobody";
    case WHOLE_SUPERVISOR:
        return "supervisor";
    case WHOLE_KEEPER:
        return "keeper";
    case WHOLE_WARDEN:
        return "warden";
    case WHOLE_CHILD:
        return "child";
    }
    (void)snprintf(number, sizeof(number), "%d", (int)pid);
    return number;
}

static void hear(const char *name, const struct wire_message *message)
{
    char text[400] = "";
    size_t used = 0;
    const struct {
        const char *name;
        int value;
    } parts[] = {{"pid", message->pid},
                 {"status", message->status},
                 {"signal", message->signal},
                 {"error", message->error}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].value != 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used, " %s=%d", parts[i].name,
                                     parts[i].value);
    if (message->text[0] != '\0')
        (void)snprintf(text + used, sizeof(text) - used, " (%s)", message->text);
    notes_add("%s hears %s%s", name, wire_type_name(message->type), text);
}

/* --- the kernel: calls that the linker leads here (mk/test.mk) */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    if (timeout != -1)
        notes_add("waits for %d ms", timeout);
    for (;;) {
        const int ready = __real_poll(fds, count, 0);
        if (ready != 0 && kernel.turns++ < TURNS_MOST)
            return ready;
        if (ready != 0) {
            notes_add("spins");
            apart_end();
        }
        kernel.turns = 0;
        apart_wait();
        if (whole_keeper.poll_error != 0) {
            errno = whole_keeper.poll_error;
            whole_keeper.poll_error = 0;
            for (nfds_t i = 0; i < count; i++)
                fds[i].revents = 0;
            return -1;
        }
    }
}

void __wrap__exit(int code) __attribute__((noreturn));
void __wrap__exit(int code)
{
    notes_add("ends with %d", code);
    apart_end();
}

pid_t __wrap_getppid(void);
pid_t __wrap_getppid(void)
{
    return whole_keeper.parent;
}

pid_t __wrap_getpgrp(void);
pid_t __wrap_getpgrp(void)
{
    return whole_keeper.group;
}

pid_t __wrap_setsid(void);
pid_t __wrap_setsid(void)
{
    notes_add("begins a session");
    return WHOLE_KEEPER;
}

int __wrap_setpgid(pid_t pid, pid_t group);
int __wrap_setpgid(pid_t pid, pid_t group)
{
    notes_add("moves %d to the group of %s", (int)pid, who(group));
    return 0;
}

int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
    return fd == STDIN_FILENO && whole_keeper.terminal;
}

pid_t __wrap_tcgetpgrp(int fd);
pid_t __wrap_tcgetpgrp(int fd)
{
    (void)fd;
    return whole_keeper.foreground;
}

int __wrap_tcsetpgrp(int fd, pid_t group);
int __wrap_tcsetpgrp(int fd, pid_t group)
{
    (void)fd;
    notes_add("gives the terminal to the group of %s", who(group));
    return 0;
}

int __wrap_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
    notes_add("sends %d to %s", signal, who(pid));
    return 0;
}

int __real_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how)
{
    notes_add(fd == kernel.line[0] && how == SHUT_WR         ? "says no more to the warden"
              : fd == kernel.supervisor[0] && how == SHUT_RD ? "hears no more of the supervisor"
                                                             : "shuts something down");
    return __real_shutdown(fd, how);
}

int __wrap_prctl(int option, unsigned long value);
int __wrap_prctl(int option, unsigned long value)
{
    notes_add(option == PR_SET_CHILD_SUBREAPER ? "takes orphans in (%lu)"
                                               : "is told of its parent's death by %lu",
              value);
    return 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    int ends[2];
    if (strcmp(path, "/proc/300/task/300/children") != 0)
        return __real_open(path, flags);
    if (whole_keeper.children == NULL || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    const ssize_t size = (ssize_t)strlen(whole_keeper.children);
    const bool whole = write(ends[1], whole_keeper.children, (size_t)size) == size;
    (void)close(ends[1]);
    whole_keeper.list = ends[0];
    return whole ? ends[0] : -1;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    if (type != P_PID || id != WHOLE_WARDEN || options != (WEXITED | WNOHANG | WNOWAIT)) {
        errno = ECHILD;
        return -1;
    }
    const struct wire_message exited = {.type = WIRE_EXITED, .status = W_EXITCODE(4, 0)};
    if (whole_keeper.says_exited_as_it_dies)
        (void)__real_wire_send(kernel.line[1], &exited, NULL, 0, NULL);
    if (whole_keeper.warden_is_dead)
        info->si_pid = WHOLE_WARDEN; /* else it is left as it is: waitid(2) */
    return 0;
}

int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
    (void)flags;
    if (whole_keeper.no_timer || clock != CLOCK_BOOTTIME)
        return -1;
    return kernel.timer;
}

void whole_kernel_fire(void)
{
    if (kernel.timer_ns <= kernel.now_ns)
        (void)eventfd_write(kernel.timer, 1);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *spec,
                           struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *spec, struct itimerspec *old)
{
    char text[32];
    eventfd_t fired;
    (void)old;
    (void)eventfd_read(fd, &fired);
    kernel.timer_ns = spec->it_value.tv_sec * NS_PER_S + spec->it_value.tv_nsec;
    kernel.timer_ns = kernel.timer_ns == 0 ? TIME_NEVER : kernel.timer_ns;
    notes_add("wakes at %s%s%s", seconds(kernel.timer_ns, text),
              flags == TFD_TIMER_ABSTIME ? "" : " from now",
              spec->it_interval.tv_sec == 0 && spec->it_interval.tv_nsec == 0 ? "" : " and again");
    whole_kernel_fire();
    return 0;
}

/* --- the other parts of the program */

int64_t __wrap_clock_boottime_ns(void);
int64_t __wrap_clock_boottime_ns(void)
{
    return kernel.now_ns;
}

int __wrap_signals_open(void);
int __wrap_signals_open(void)
{
    return kernel.signals[0];
}

int __wrap_signals_add_interrupt(int fd);
int __wrap_signals_add_interrupt(int fd)
{
    notes_add(fd == kernel.signals[0] ? "hears of Ctrl-C" : "hears nothing");
    return 0;
}

void __wrap_title_set(const char *comm, const char *text);
void __wrap_title_set(const char *comm, const char *text)
{
    notes_add("is %s %s", comm, text);
}

void __wrap_fds_close_except(const int *fds, unsigned count);
void __wrap_fds_close_except(const int *fds, unsigned count)
{
    (void)fds;
    notes_add("keeps %u descriptors", count);
}

void __wrap_realtime_enter_again(void);
void __wrap_realtime_enter_again(void)
{
    notes_add("is on time");
}

pid_t __wrap_realtime_wait(pid_t which, int *status, int options);
pid_t __wrap_realtime_wait(pid_t which, int *status, int options)
{
    notes_add("reaps %s%s%s", who(which), kernel.note.pid != 0 ? ", whom it has not forgotten" : "",
              status == NULL && options == 0 ? "" : ", or not");
    return which;
}

int __wrap_deadman_open(struct deadman *deadman, struct crown_error *err);
int __wrap_deadman_open(struct deadman *deadman, struct crown_error *err)
{
    (void)deadman;
    (void)err;
    return 0;
}

void __wrap_deadman_set(const struct deadman *deadman, int64_t at_ns);
void __wrap_deadman_set(const struct deadman *deadman, int64_t at_ns)
{
    char text[32];
    (void)deadman;
    notes_add("dies at %s", seconds(at_ns, text));
}

struct rounds_refused __wrap_rounds_kill_once(pid_t last);
struct rounds_refused __wrap_rounds_kill_once(pid_t last)
{
    notes_add("kills the tree, %s last", who(last));
    return (struct rounds_refused){.pid = 0};
}

void __wrap_rounds_kill_all(pid_t last,
                            void (*refused)(void *context, const struct rounds_refused *who),
                            void *context);
void __wrap_rounds_kill_all(pid_t last,
                            void (*refused)(void *context, const struct rounds_refused *who),
                            void *context)
{
    const struct rounds_refused one = {.pid = whole_keeper.refuses, .error = EPERM};
    notes_add("kills the tree to its end, %s last", who(last));
    if (one.pid != 0)
        refused(context, &one);
}

pid_t __wrap_warden_start(struct child_spec *spec, const int *fds, struct warden_note *into,
                          int *keeper_end, struct crown_error *err);
pid_t __wrap_warden_start(struct child_spec *spec, const int *fds, struct warden_note *into,
                          int *keeper_end, struct crown_error *err)
{
    char text[32];
    if (whole_keeper.no_warden)
        return error_set(err, ERROR_SYSTEM, "no more processes");
    if (spec == NULL)
        notes_add("starts a warden that is ready");
    else
        notes_add("starts a warden for %s, which dies at %s, stream %s", spec->argv[0],
                  seconds(into->deadline_ns, text),
                  spec->stdio[0] != CHILD_STDIO_FD ? "none"
                  : fds[0] == kernel.given[2]      ? "given"
                                                   : "another");
    if (fcntl(kernel.line[0], F_GETFD) < 0) { /* the line to the one before was closed */
        (void)close(kernel.line[1]);
        (void)wire_pair(kernel.line, NULL);
    }
    into->pid = WHOLE_WARDEN;
    whole_keeper.line = *keeper_end = kernel.line[0];
    return WHOLE_WARDEN;
}

int __wrap_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err);
int __wrap_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err)
{
    char text[32];
    if (fd != kernel.line[0]) {
        if (!whole_keeper.runtime_has_left)
            hear("runtime", message);
    } else if (message->type == WIRE_START_CHILD) {
        notes_add("warden hears start_child with %u descriptors", nfds);
    } else if (message->type == WIRE_SET_DEADLINE) {
        notes_add("warden hears deadline %s", seconds(kernel.note.deadline_ns, text));
    } else {
        hear("warden", message);
    }
    return __real_wire_send(fd, message, fds, nfds, err);
}

#include "whole_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "process/deadman.h"
#include "process/keeper.h"
#include "process/rounds.h"
#include "process/signals.h"
#include "whole_process.h"

struct whole_keeper whole_keeper;
struct whole_kernel kernel;

/* --- the kernel: calls that the linker leads here (mk/test.mk) */

pid_t __wrap_getpgrp(void);
pid_t __wrap_getpgrp(void)
{
    return whole_keeper.group;
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
    notes_add("gives the terminal to the group of %s", whole_who(group));
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
    notes_add("wakes at %s%s%s", whole_seconds(kernel.timer_ns, text),
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

pid_t __wrap_realtime_wait(pid_t which, int *status, int options);
pid_t __wrap_realtime_wait(pid_t which, int *status, int options)
{
    notes_add("reaps %s%s%s", whole_who(which),
              kernel.note.pid != 0 ? ", whom it has not forgotten" : "",
              status == NULL && options == 0 ? "" : ", or not");
    return which;
}

struct rounds_refused __wrap_rounds_kill_once(pid_t last);
struct rounds_refused __wrap_rounds_kill_once(pid_t last)
{
    notes_add("kills the tree, %s last", whole_who(last));
    return (struct rounds_refused){.pid = 0};
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
                  whole_seconds(into->deadline_ns, text),
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
            whole_hear("runtime", message);
    } else if (message->type == WIRE_START_CHILD) {
        notes_add("warden hears start_child with %u descriptors", nfds);
    } else if (message->type == WIRE_SET_DEADLINE) {
        notes_add("warden hears deadline %s", whole_seconds(kernel.note.deadline_ns, text));
    } else {
        whole_hear("warden", message);
    }
    return __real_wire_send(fd, message, fds, nfds, err);
}

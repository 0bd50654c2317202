#include "whole_process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "apart.h"
#include "notes.h"
#include "process/deadman.h"
#include "process/rounds.h"

#define TURNS_MOST 100 /* without a wait: more of them never end */

struct whole_process whole_process;
static unsigned turns; /* since it has waited */

void whole_process_open(pid_t parent)
{
    whole_process = (struct whole_process){.parent = parent};
    turns = 0;
    notes_forget();
}

const char *whole_seconds(int64_t at_ns, char text[32])
{
    if (at_ns == TIME_NEVER)
        return "never";
    (void)snprintf(text, 32, "%g", clock_seconds_from_ns(at_ns - START_NS));
    return text;
}

const char *whole_who(pid_t pid)
{
    static const struct {
        pid_t pid;
        const char *name;
    } names[] = {{0, "nobody"},
                 {WHOLE_SUPERVISOR, "supervisor"},
                 {WHOLE_KEEPER, "keeper"},
                 {WHOLE_WARDEN, "warden"},
                 {WHOLE_CHILD, "child"}};
    static char text[40];
    const char *group = pid < 0 ? "the group of " : "";
    (void)snprintf(text, sizeof(text), "%s%d", group, abs(pid));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].pid == abs(pid))
            (void)snprintf(text, sizeof(text), "%s%s", group, names[i].name);
    return text;
}

void whole_hear(const char *name, const struct wire_message *message)
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
        if (ready != 0 && turns++ < TURNS_MOST)
            return ready;
        if (ready != 0) {
            notes_add("spins");
            apart_end();
        }
        turns = 0;
        apart_wait();
        if (whole_process.poll_error != 0) {
            errno = whole_process.poll_error;
            whole_process.poll_error = 0;
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
    return whole_process.parent;
}

pid_t __wrap_setsid(void);
pid_t __wrap_setsid(void)
{
    notes_add("begins a session");
    return 1;
}

int __wrap_setpgid(pid_t pid, pid_t group);
int __wrap_setpgid(pid_t pid, pid_t group)
{
    notes_add("moves %d to the group of %s", (int)pid, whole_who(group));
    return 0;
}

int __wrap_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
    notes_add("sends %d to %s", signal, whole_who(pid));
    return 0;
}

int __wrap_prctl(int option, unsigned long value);
int __wrap_prctl(int option, unsigned long value)
{
    notes_add(option == PR_SET_CHILD_SUBREAPER ? "takes orphans in (%lu)"
                                               : "is told of its parent's death by %lu",
              value);
    const bool refused = option == whole_process.refused_option &&
                         (whole_process.refused_value == 0 || whole_process.refused_value == value);
    return refused ? -1 : 0;
}

/* --- the other parts of the program */

void __wrap_title_set(const char *comm, const char *text);
void __wrap_title_set(const char *comm, const char *text)
{
    notes_add("is %s %s", comm, text);
}

void __wrap_fds_close_except(const int *fds, unsigned count);
void __wrap_fds_close_except(const int *fds, unsigned count)
{
    memcpy(whole_process.kept, fds, count * sizeof(*fds));
    notes_add("keeps %u descriptors", count);
}

void __wrap_realtime_enter_again(void);
void __wrap_realtime_enter_again(void)
{
    notes_add("is on time");
}

int __wrap_deadman_open(struct deadman *deadman, struct crown_error *err);
int __wrap_deadman_open(struct deadman *deadman, struct crown_error *err)
{
    (void)deadman;
    if (whole_process.no_deadman)
        return error_set(err, ERROR_SYSTEM, "no more timers");
    return 0;
}

void __wrap_deadman_set(const struct deadman *deadman, int64_t at_ns);
void __wrap_deadman_set(const struct deadman *deadman, int64_t at_ns)
{
    char text[32];
    (void)deadman;
    notes_add("dies at %s", whole_seconds(at_ns, text));
}

void __wrap_rounds_kill_all(pid_t last,
                            void (*refused)(void *context, const struct rounds_refused *who),
                            void *context);
void __wrap_rounds_kill_all(pid_t last,
                            void (*refused)(void *context, const struct rounds_refused *who),
                            void *context)
{
    const struct rounds_refused one = {.pid = whole_process.refuses, .error = EPERM};
    notes_add("kills the tree to its end, %s last", whole_who(last));
    if (one.pid != 0)
        refused(context, &one);
}

#include "whole_supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "apart.h"
#include "process/launch.h"
#include "process/orphans.h"
#include "process/requests.h"
#include "process/supervisor.h"

#include <setjmp.h>
#include <stddef.h>

#include <cmocka.h>

#define TURNS_MOST 100 /* without a wait: more of them never end */
#define DEAD_MOST 4

struct whole_supervisor whole_supervisor;

static int64_t now_ns;
static int signals[2], line[2]; /* the supervisor's end, the test's end */
static unsigned turns, runtimes, keepers;
static int exit_code;
static bool will_sent;
static int terminal[2], store[2]; /* the supervisor's end, the test's end */
static struct dead {
    pid_t pid;
    int status;
} dead[DEAD_MOST];

/* --- the kernel: calls that the linker leads here (mk/test.mk) */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const bool wants_room = fds[1].events & POLLOUT;
    fds[1].events &= ~POLLOUT; /* the socket of the test always has room */
    const int ready = __real_poll(fds, count, 0);
    if ((ready != 0 || timeout == 0) && turns++ < TURNS_MOST)
        return ready;
    turns = 0;
    if (timeout == -1)
        notes_add("waits%s", wants_room ? " for room" : "");
    else
        notes_add("waits %d ms%s", timeout, wants_room ? ", for room" : "");
    apart_wait();
    return __real_poll(fds, count, 0);
}

int __wrap_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
    notes_add("sends %d to %d", signal, (int)pid);
    return 0;
}

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return whole_supervisor.init ? 1 : __real_getpid();
}

int __wrap_prctl(int option, unsigned long value);
int __wrap_prctl(int option, unsigned long value)
{
    notes_add(option == PR_SET_CHILD_SUBREAPER ? "takes orphans in (%lu)" : "prctl %lu", value);
    return 0;
}

/* --- the other parts of the program */

int64_t __wrap_clock_monotonic_ns(void);
int64_t __wrap_clock_monotonic_ns(void)
{
    return now_ns;
}

int __wrap_signals_open_supervisor(void);
int __wrap_signals_open_supervisor(void)
{
    return whole_supervisor.no_signals ? -1 : signals[0];
}

bool __wrap_realtime_enter(void);
bool __wrap_realtime_enter(void)
{
    return true;
}

bool __wrap_realtime_lock_memory(void);
bool __wrap_realtime_lock_memory(void)
{
    return true;
}

void __wrap_rseq_leave(void);
void __wrap_rseq_leave(void)
{
}

pid_t __wrap_realtime_wait(pid_t which, int *status, int options);
pid_t __wrap_realtime_wait(pid_t which, int *status, int options)
{
    (void)options;
    for (int i = 0; i < DEAD_MOST; i++) {
        const pid_t pid = dead[i].pid;
        if (pid == 0 || (which != -1 && which != pid))
            continue;
        *status = dead[i].status;
        dead[i].pid = 0;
        return pid;
    }
    return 0;
}

void __wrap_title_set(const char *comm, const char *text);
void __wrap_title_set(const char *comm, const char *text)
{
    notes_add("is %s %s", comm, text);
}

void __wrap_title_line(const char *text);
void __wrap_title_line(const char *text)
{
    notes_add("shows %s", text);
}

pid_t __wrap_launch_runtime(const struct supervisor_config *config, int journal_fd, int signals_fd,
                            struct wills *wills, int *into, struct crown_error *err);
pid_t __wrap_launch_runtime(const struct supervisor_config *config, int journal_fd, int signals_fd,
                            struct wills *wills, int *into, struct crown_error *err)
{
    (void)config;
    (void)journal_fd;
    (void)signals_fd;
    (void)wills;
    if (whole_supervisor.no_runtime) {
        notes_add("cannot start a runtime");
        return error_set(err, ERROR_SYSTEM, "no more processes");
    }
    if (line[1] >= 0)
        (void)close(line[1]);
    assert_int_equal(wire_pair(line, NULL), 0);
    notes_add("starts runtime %u", WHOLE_RUNTIME + runtimes);
    *into = line[0];
    return (pid_t)(WHOLE_RUNTIME + runtimes++);
}

void __wrap_launch_prepare(struct keepers *table, struct launch_spare *spare);
void __wrap_launch_prepare(struct keepers *table, struct launch_spare *spare)
{
    notes_add("makes a keeper ready");
    (void)keepers_next_warden(table);
    keepers_add(table, WHOLE_SPARE);
    whole_supervisor.spare = dup(signals[0]);
    *spare = (struct launch_spare){.pid = WHOLE_SPARE, .line = whole_supervisor.spare};
}

unsigned __wrap_launch_keeper(struct keepers *table, struct launch_spare *spare,
                              const struct wire_message *message, const int *fds, unsigned nfds);
unsigned __wrap_launch_keeper(struct keepers *table, struct launch_spare *spare,
                              const struct wire_message *message, const int *fds, unsigned nfds)
{
    (void)spare;
    (void)fds;
    if (whole_supervisor.no_keeper) {
        keepers_add_failed(table, message->id, EAGAIN);
        return nfds;
    }
    notes_add("starts keeper %u", WHOLE_KEEPER + keepers);
    (void)keepers_next_warden(table);
    keepers_add(table, (pid_t)(WHOLE_KEEPER + keepers));
    keepers_assign(table, (pid_t)(WHOLE_KEEPER + keepers++), message->id, NULL, 0);
    return nfds;
}

unsigned __wrap_orphans_kill(pid_t runtime, const struct keepers *table, bool init,
                             struct rounds_refused *refused);
unsigned __wrap_orphans_kill(pid_t runtime, const struct keepers *table, bool init,
                             struct rounds_refused *refused)
{
    (void)table;
    notes_add("kills orphans%s, all but %d", init ? " as process 1" : "", (int)runtime);
    if (whole_supervisor.unkillable != 0)
        *refused = (struct rounds_refused){.pid = whole_supervisor.unkillable, .error = EPERM};
    return whole_supervisor.orphans;
}

void __wrap_wills_execute(struct wills *wills);
void __wrap_wills_execute(struct wills *wills)
{
    will_sent = whole_supervisor.wills;
    if (!will_sent)
        return;
    wills->sent[0] = store[0];
    notes_add("executes a will");
}

void __wrap_wills_close(struct wills *wills);
void __wrap_wills_close(struct wills *wills)
{
    if (!will_sent || whole_supervisor.wills)
        return;
    notes_add("sees that the will was read");
    wills->sent[0] = -1;
    will_sent = false;
}

unsigned __wrap_wills_take(struct wills *wills, uint64_t id, const int *fds, unsigned nfds);
unsigned __wrap_wills_take(struct wills *wills, uint64_t id, const int *fds, unsigned nfds)
{
    (void)wills;
    (void)fds;
    notes_add("takes will %d", (int)id);
    return nfds;
}

bool __wrap_keepers_full(const struct keepers *table);
bool __wrap_keepers_full(const struct keepers *table)
{
    (void)table;
    return whole_supervisor.full;
}

int __wrap_fds_open_standard(void);
int __wrap_fds_open_standard(void)
{
    return whole_supervisor.no_null ? -1 : 0;
}

void __wrap_requests_init(struct requests *requests);
void __wrap_requests_init(struct requests *requests)
{
    *requests = (struct requests){.from_terminal = whole_supervisor.terminal,
                                  .terminal = whole_supervisor.terminal ? terminal[0] : -1};
}

int64_t __wrap_wills_close_ns(const struct wills *wills);
int64_t __wrap_wills_close_ns(const struct wills *wills)
{
    (void)wills;
    return will_sent && whole_supervisor.wills ? now_ns + NS_PER_S : TIME_NEVER;
}

int __real_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err);
int __wrap_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err);
int __wrap_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err)
{
    (void)fd;
    (void)fds;
    (void)nfds;
    (void)err;
    if (whole_supervisor.deaf) {
        errno = EAGAIN;
        return -1;
    }
    if (message->type == WIRE_HELLO)
        notes_add("runtime hears hello restarts=%u status=%d, token of %zu%s", message->restarts,
                  message->status, strlen(message->text),
                  message->real_time ? "" : ", not on time");
    else if (message->type == WIRE_STOP)
        notes_add("runtime hears stop %d", message->signal);
    else
        notes_add("runtime hears %s %d %d %s", wire_type_name(message->type), (int)message->id,
                  message->error, message->text);
    return 0;
}

/* --- what the test has happen */

int whole_supervisor_open(void **state)
{
    (void)state;
    now_ns = START_NS;
    turns = runtimes = keepers = 0;
    exit_code = -1;
    will_sent = false;
    line[1] = -1;
    memset(dead, 0, sizeof(dead));
    whole_supervisor = (struct whole_supervisor){
        .heartbeat_timeout_ns = 2 * NS_PER_S, .silence_ns = TIME_NEVER, .held = ""};
    notes_forget();
    return pipe2(signals, O_CLOEXEC | O_NONBLOCK) | pipe2(terminal, O_CLOEXEC) |
           pipe2(store, O_CLOEXEC);
}

int whole_supervisor_close(void **state)
{
    (void)state;
    int result = 0;
    const int all[] = {signals[0], signals[1], terminal[0], terminal[1],
                       store[0],   store[1],   line[1]};
    apart_close();
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        result |= all[i] >= 0 ? close(all[i]) : 0;
    return result;
}

static void run(void)
{
    const struct supervisor_config config = {
        .heartbeat_timeout_ns = whole_supervisor.heartbeat_timeout_ns, .title = "a"};
    exit_code = supervisor_run(&config);
    notes_add("ends with %d", exit_code);
}

void whole_supervisor_starts(void)
{
    apart_begin(run);
}

void runtime_said(struct wire_message message)
{
    assert_int_equal(__real_wire_send(line[1], &message, NULL, 0, NULL), 0);
}

void runtime_says(struct wire_message message)
{
    runtime_said(message);
    apart_go_on();
}

void whole_supervisor_starts_armed(void)
{
    whole_supervisor_starts();
    runtime_says((struct wire_message){.type = WIRE_ARM});
    notes_forget();
}

static void hang_up(int *fd)
{
    (void)close(*fd);
    *fd = -1;
    apart_go_on();
}

void runtime_hangs_up(void)
{
    hang_up(&line[1]);
}

void terminal_hangs_up(void)
{
    hang_up(&terminal[1]);
}

void store_closes(void)
{
    whole_supervisor.wills = false;
    hang_up(&store[1]);
}

void runtime_starts_child(uint64_t id)
{
    runtime_says((struct wire_message){.type = WIRE_START_KEEPER, .id = id});
}

void signal_comes(int signal)
{
    const struct signalfd_siginfo info = {.ssi_signo = (uint32_t)signal};
    assert_int_equal(write(signals[1], &info, sizeof(info)), sizeof(info));
    apart_go_on();
}

void somebody_dies(pid_t pid, int status)
{
    const struct signalfd_siginfo info = {.ssi_signo = SIGCHLD, .ssi_pid = (uint32_t)pid};
    int free = 0;
    while (dead[free].pid != 0)
        free++;
    assert_true(free < DEAD_MOST);
    dead[free] = (struct dead){.pid = pid, .status = status};
    assert_int_equal(write(signals[1], &info, sizeof(info)), sizeof(info));
    apart_go_on();
}

void time_passes(int64_t ns)
{
    now_ns += ns;
    apart_go_on();
}

void supervisor_wakes(void)
{
    apart_go_on();
}

int supervisor_exit_code(void)
{
    assert_true(apart_has_ended());
    return exit_code;
}

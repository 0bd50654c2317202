#include "stage_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../support/slept.h"
#include "patience.h"
#include "process/rounds.h"
#include "process/supervisor.h"
#include "process/title.h"

#define SLEPT_S 3600

struct stage stage;

void stage_pause(int64_t ns)
{
    const struct timespec pause = {ns / NS_PER_S, ns % NS_PER_S};
    (void)nanosleep(&pause, NULL); /* only how often we look */
}

void stage_main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--play") == 0)
        stage_play_child(argv[2], argv[3]);
    if (title_take_arguments(argc, argv, environ) == NULL)
        exit(1);
}

static void drop_rights(void)
{
    /* A user of its own: its processes are counted together with all others of that user. */
    const uid_t user = 1000000 + (uid_t)getpid();
    const struct rlimit limit = {(rlim_t)stage.board->processes, (rlim_t)stage.board->processes};
    if ((stage.board->processes > 0 && setrlimit(RLIMIT_NPROC, &limit) < 0) ||
        setgroups(0, NULL) < 0 || setresgid(STAGE_NOBODY, STAGE_NOBODY, STAGE_NOBODY) < 0 ||
        setresuid(user, user, user) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
        _exit(9);
}

static void play_supervisor(void)
{
    const struct supervisor_config config = {.run_runtime = stage_play_runtime,
                                             .heartbeat_timeout_ns =
                                                 stage.board->end_silence_ns / 5,
                                             .title = ""};
    (void)close(stage.ticks);
    if (stage.board->stranger && fork() == 0) {
        (void)prctl(PR_SET_NAME, "stranger");
        for (;;)
            (void)pause();
    }
    const rlim_t most = (rlim_t)stage.board->descriptors;
    const struct rlimit descriptors = {most, most};
    if (most > 0 && setrlimit(RLIMIT_NOFILE, &descriptors) < 0)
        _exit(9);
    if (stage.board->own_group && setsid() < 0)
        _exit(9);
    if (stage.board->slept_s > 0 && !slept_for(stage.board->slept_s))
        _exit(9);
    if (stage.board->niceness > 0 && setpriority(PRIO_PROCESS, 0, stage.board->niceness) < 0)
        _exit(9);
    if (stage.board->unprivileged)
        drop_rights();
    _exit(supervisor_run(&config));
}

int stage_open(void **state)
{
    (void)state;
    stage = (struct stage){.ticks = -1, .folder = "/tmp/crown-stage-XXXXXX"};
    stage.board =
        mmap(NULL, sizeof(*stage.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage.board == MAP_FAILED || mkdtemp(stage.folder) == NULL ||
        prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return -1;
    (void)snprintf(stage.fifo, sizeof(stage.fifo), "%s/ticks", stage.folder);
    /* Some children run without rights. */
    if (mkfifo(stage.fifo, 0600) < 0 || chmod(stage.folder, 0777) < 0 ||
        chmod(stage.fifo, 0666) < 0)
        return -1;
    stage.ticks = open(stage.fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    stage.board->mode = "tick";
    stage.board->spec = (struct child_spec){.stop_signal = SIGTERM,
                                            .stop_at_ns = TIME_NEVER,
                                            .kill_at_ns = TIME_NEVER,
                                            .deadline_ns = TIME_NEVER};
    return stage.ticks < 0 ? -1 : 0;
}

int stage_open_ready(void **state)
{
    int result = stage_open(state);
    if (result == 0)
        stage.board->ready = true;
    return result;
}

/* Whom a test has left stopped must be able to see the end. */
static void let_go_on(void)
{
    static const char *const names[] = {"crown-supervise", "crown-runtime", "crown-keeper",
                                        "crown-warden", "crown-spare"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        pid_t pid = stage_find(names[i]);
        if (pid > 0)
            (void)kill(pid, SIGCONT);
    }
}

/* @return whether nobody is left. */
static bool reap(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid != stage.supervisor)
            continue;
        stage.supervisor = 0;
        stage.status = status;
    }
    return pid < 0;
}

int stage_close(void **state)
{
    (void)state;
    char path[64];
    int64_t until_ns = clock_boottime_ns() + patience_ns();
    bool clean;
    let_go_on();
    if (stage.supervisor > 0)
        (void)kill(stage.supervisor, SIGKILL);
    while (!(clean = reap()) && clock_boottime_ns() < until_ns)
        stage_pause(STAGE_LOOK_NS);
    rounds_kill_all(0, NULL, NULL);
    (void)snprintf(path, sizeof(path), "%s.world", stage.fifo);
    (void)unlink(path); /* one test writes it */
    int removed = unlink(stage.fifo) | rmdir(stage.folder) | close(stage.ticks);
    (void)munmap(stage.board, sizeof(*stage.board));
    return clean ? removed : -1;
}

void stage_start(void)
{
    (void)fflush(NULL);
    stage.supervisor = fork();
    if (stage.supervisor == 0)
        play_supervisor();
    assert_true(stage.supervisor > 0);
}

void stage_start_as_init(void)
{
    (void)fflush(NULL);
    stage.supervisor =
        (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
    if (stage.supervisor == 0) {
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("proc", "/proc", "proc", 0, stage.board->hides ? "hidepid=2" : NULL) < 0)
            _exit(9);
        play_supervisor();
    }
    assert_true(stage.supervisor > 0);
}

static void hear(const struct tick *tick)
{
    if (tick->kind == TICK_SIGNALLED) {
        stage.last_signal = tick->detail;
        stage.signals++;
        return;
    }
    stage.last_ns[tick->kind] = tick->at_ns;
    stage.count[tick->kind]++;
    if (tick->kind != TICK_DAEMON)
        return;
    for (unsigned i = 0; i < stage.daemons; i++)
        if (stage.daemon_pids[i] == tick->pid)
            return;
    assert_true(stage.daemons < 16);
    stage.daemon_pids[stage.daemons++] = tick->pid;
}

bool stage_gone(void)
{
    struct tick tick;
    ssize_t got;
    while ((got = read(stage.ticks, &tick, sizeof(tick))) == (ssize_t)sizeof(tick))
        hear(&tick);
    return got == 0;
}

/* How long it was waited. A runtime that spins is waited for by its processor time, of which a busy
 * host gives it little. */
struct wait {
    int64_t spun_ns, since_ns; /* when that was first seen */
    int64_t before_ns;
};

static bool is_too_long(struct wait *wait)
{
    int64_t now_ns = clock_boottime_ns();
    int64_t spun_ns = stage.board->spun_ns;
    if (spun_ns != wait->spun_ns) {
        wait->before_ns += spun_ns > wait->spun_ns ? spun_ns - wait->spun_ns : spun_ns;
        wait->spun_ns = spun_ns;
        wait->since_ns = now_ns;
    }
    return wait->before_ns + now_ns - wait->since_ns > patience_ns();
}

void stage_until(bool (*done)(void))
{
    struct wait wait = {.spun_ns = stage.board->spun_ns, .since_ns = clock_boottime_ns()};
    for (;;) {
        (void)stage_gone();
        (void)reap();
        if (done())
            return;
        if (is_too_long(&wait))
            fail_msg("what was waited for did not come");
        stage_pause(STAGE_LOOK_NS);
    }
}

static unsigned wanted_daemons;
static unsigned wanted_count;

static bool ticking(void)
{
    return stage.count[TICK_CHILD] > wanted_count && stage.daemons >= wanted_daemons;
}

void stage_until_ticking(unsigned daemons)
{
    wanted_daemons = daemons;
    wanted_count = stage.count[TICK_CHILD];
    stage_until(ticking);
}

void stage_start_armed(int64_t silence_ns)
{
    stage.board->arm = true;
    stage.board->silence_ns = silence_ns;
    stage_start();
    stage_until_ticking(0);
}

static int wanted_runs;

static bool so_many_runs(void)
{
    return stage.board->runs >= wanted_runs;
}

void stage_until_runs(int runs)
{
    wanted_runs = runs;
    stage_until(so_many_runs);
}

void stage_until_gone(void)
{
    assert_true(stage.count[TICK_CHILD] > 0);
    stage_until(stage_gone);
}

static bool supervisor_ended(void)
{
    return stage.supervisor == 0;
}

void stage_wait_supervisor(void)
{
    stage_until(supervisor_ended);
}

void stage_until_empty(void)
{
    stage_until(reap);
}

const struct wire_message *stage_message(enum wire_type type)
{
    for (int i = 0; i < stage.board->logged; i++)
        if (stage.board->log[i].type == type)
            return &stage.board->log[i];
    return NULL;
}

static enum wire_type wanted_type;

static bool message_came(void)
{
    return stage_message(wanted_type) != NULL;
}

const struct wire_message *stage_until_message(enum wire_type type)
{
    wanted_type = type;
    stage_until(message_came);
    return stage_message(type);
}

static bool order_taken(void)
{
    return stage.board->order == ORDER_NONE;
}

void stage_order(enum order order, const struct wire_message *message)
{
    if (message != NULL)
        stage.board->order_message = *message;
    stage.board->order = order;
    stage_until(order_taken);
}

void stage_stop_in(int64_t ns)
{
    const struct wire_message stop = {.kill_at_ns = clock_boottime_ns() + ns};
    stage_order(ORDER_STOP, &stop);
}

static const char *wanted_name;
static pid_t found_pid;

static bool found(void)
{
    found_pid = stage_find(wanted_name);
    return found_pid != 0;
}

pid_t stage_pid(const char *name)
{
    wanted_name = name;
    stage_until(found);
    return found_pid;
}

void stage_kill(pid_t pid, int signal)
{
    assert_int_equal(kill(pid, signal), 0);
}

void stage_hold(pid_t pid)
{
    assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

void stage_let_go(pid_t pid)
{
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, 0), 0);
}

void stage_sleep_before(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(!slept_for(SLEPT_S));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    stage.board->slept_s = status == 0 ? SLEPT_S : 0;
}

void stage_set_deadlines(int64_t stop_ns, int64_t kill_ns, int64_t deadline_ns)
{
    int64_t now = clock_boottime_ns() + stage.board->slept_s * NS_PER_S;
    stage.board->spec.stop_at_ns = clock_add_ns(now, stop_ns);
    stage.board->spec.kill_at_ns = clock_add_ns(now, kill_ns);
    stage.board->spec.deadline_ns = clock_add_ns(now, deadline_ns);
}

static bool world_written(void)
{
    char path[64];
    struct stat info;
    (void)snprintf(path, sizeof(path), "%s.world", stage.fifo);
    return stat(path, &info) == 0 && info.st_size == (off_t)sizeof(struct stage_world);
}

void stage_world(struct stage_world *world)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s.world", stage.fifo);
    stage_until(world_written);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, world, sizeof(*world)), sizeof(*world));
    assert_int_equal(close(fd), 0);
}

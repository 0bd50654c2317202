#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/link.h"
#include "process/rounds.h"
#include "process/supervisor.h"
#include "process/title.h"

#define PATIENCE_NS (30 * NS_PER_S) /* far more than anything here takes */
#define PERIOD_NS (5 * NS_PER_MS)
#define LOOK_NS (2 * NS_PER_MS)
#define SELF "/proc/self/exe"

struct stage stage;

static void pause_ns(int64_t ns)
{
    const struct timespec pause = {0, ns};
    (void)nanosleep(&pause, NULL); /* only how often we look */
}

/* The child. */

static int fifo_fd;

static void tell(int kind, int detail)
{
    const struct tick tick = {clock_boottime_ns(), getpid(), kind, detail};
    if (write(fifo_fd, &tick, sizeof(tick)) != (ssize_t)sizeof(tick))
        _exit(1);
}

static void tick_for_ever(int kind)
{
    for (;;) {
        tell(kind, 0);
        pause_ns(PERIOD_NS);
    }
}

static void daemonize(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)setsid();
            if (fork() == 0)
                tick_for_ever(TICK_DAEMON);
            _exit(0);
        }
        (void)waitpid(pid, NULL, 0);
    }
}

static void tell_signal(int signal)
{
    tell(TICK_SIGNALLED, signal);
}

static uint64_t status_mask(const char *name)
{
    char line[256];
    uint64_t mask = ~UINT64_C(0);
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            mask = strtoull(line + strlen(name) + 1, NULL, 16);
    if (file != NULL)
        (void)fclose(file);
    return mask;
}

static void list_fds(struct stage_world *world)
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(folder) && world->fd_count < 32)
            world->fds[world->fd_count++] = fd;
    }
    (void)closedir(folder);
}

static void look_around(const char *fifo)
{
    struct stage_world world = {.leads_group = getpgrp() == getpid()};
    char path[64];
    char score[16] = "";
    struct stat null;
    struct stat stream;
    list_fds(&world); /* before anything of the test's own is open */
    if (stat("/dev/null", &null) < 0)
        _exit(1);
    for (int fd = 0; fd < 3; fd++)
        world.null[fd] = fstat(fd, &stream) == 0 && stream.st_rdev == null.st_rdev;
    world.blocked = status_mask("SigBlk:");
    world.ignored = status_mask("SigIgn:");
    (void)prctl(PR_GET_PDEATHSIG, &world.death_signal);
    world.uid = getuid();
    world.gid = getgid();
    world.group_count = getgroups(8, world.groups);
    if (getcwd(world.cwd, sizeof(world.cwd)) == NULL)
        _exit(1);
    int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, score, sizeof(score) - 1) <= 0)
        _exit(1);
    world.oom_score = atoi(score);
    (void)snprintf(path, sizeof(path), "%s.world", fifo);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (write(fd, &world, sizeof(world)) != (ssize_t)sizeof(world))
        _exit(1);
}

/* tick; daemons: three daemons tick too; stubborn: tells of signals and goes on; ends: one daemon,
 * ends itself with 7; world: looks around first. */
static void play_child(const char *mode, const char *fifo)
{
    if (strcmp(mode, "world") == 0)
        look_around(fifo);
    fifo_fd = open(fifo, O_WRONLY | O_CLOEXEC);
    if (fifo_fd < 0)
        _exit(1);
    if (strcmp(mode, "daemons") == 0)
        daemonize(3);
    if (strcmp(mode, "ends") == 0) {
        daemonize(1);
        for (int i = 0; i < 10; i++) {
            tell(TICK_CHILD, 0);
            pause_ns(PERIOD_NS);
        }
        _exit(7);
    }
    if (strcmp(mode, "stubborn") == 0) {
        (void)signal(SIGINT, tell_signal);
        (void)signal(SIGTERM, tell_signal);
        (void)signal(SIGUSR1, tell_signal);
    }
    tick_for_ever(TICK_CHILD);
}

void stage_main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--play") == 0)
        play_child(argv[2], argv[3]);
    if (title_take_arguments(argc, argv, environ) == NULL)
        exit(1);
}

/* The runtime. */

static void note(const struct wire_message *message)
{
    int place = stage.board->logged;
    if (place < STAGE_LOG_MOST) {
        stage.board->log[place] = *message;
        stage.board->logged = place + 1;
    }
}

static void start_child(struct link *link, struct keeper_link *keeper)
{
    static char mode[32];
    static char *argv[] = {SELF, "--play", mode, stage.fifo, NULL};
    static char *const envp[] = {"CROWN_ELECTION=test", "ASAN_OPTIONS=detect_leaks=0", NULL};
    struct child_spec spec = stage.board->spec;
    static char program[64];
    (void)snprintf(mode, sizeof(mode), "%s", stage.board->mode);
    if (stage.board->program != NULL) {
        (void)snprintf(program, sizeof(program), "%s", stage.board->program);
        argv[0] = program;
    }
    spec.argv = argv;
    spec.envp = envp;
    spec.label = "test";
    if (link_start_child(link, &spec, keeper, NULL) < 0)
        _exit(9);
}

static void obey(struct keeper_link *keeper)
{
    const struct wire_message message = stage.board->order_message;
    switch ((enum order)stage.board->order) {
    case ORDER_NONE:
        return;
    case ORDER_DEADLINE:
        (void)keeper_link_set_deadline(keeper, message.stop_at_ns, message.kill_at_ns,
                                       message.deadline_ns, NULL);
        break;
    case ORDER_STOP:
        (void)keeper_link_stop(keeper, message.kill_at_ns, NULL);
        break;
    case ORDER_SIGNAL:
        (void)keeper_link_signal(keeper, message.signal, NULL);
        break;
    case ORDER_HANG:
        stage.board->order = ORDER_NONE;
        for (;;)
            (void)pause();
    case ORDER_CLOSE:
        keeper_link_close(keeper);
        break;
    }
    stage.board->order = ORDER_NONE;
}

static void wait_hello(struct link *link)
{
    struct wire_message hello;
    struct pollfd polled = {.fd = link_fd(link), .events = POLLIN};
    int run = stage.board->runs;
    if (poll(&polled, 1, -1) < 0 || link_receive(link, &hello, NULL) <= 0)
        _exit(9);
    if (run < 2)
        (void)memcpy(stage.board->token[run], hello.text, WIRE_TEXT);
    stage.board->restarts = hello.restarts;
    stage.board->runs = run + 1;
}

static void read_links(struct link *link, struct keeper_link *keeper)
{
    struct wire_message message;
    int got = 0;
    while ((got = link_receive(link, &message, NULL)) > 0) {
        note(&message);
        if (message.type == WIRE_STOP) {
            (void)link_arm(link, false, 0, NULL);
            _exit(5);
        }
    }
    while (keeper->fd >= 0 && (got = keeper_link_receive(keeper, &message, NULL)) > 0)
        note(&message);
    if (keeper->fd >= 0 && got < 0)
        keeper_link_close(keeper);
}

static int play_runtime(int line, int journal, void *context)
{
    struct link *link = link_new(line, NULL);
    struct keeper_link keeper = {.fd = -1};
    (void)journal;
    (void)context;
    if (link == NULL)
        _exit(9);
    wait_hello(link);
    if (stage.board->crash)
        _exit(3);
    if (stage.board->arm && link_arm(link, true, stage.board->silence_ns, NULL) < 0)
        _exit(9);
    start_child(link, &keeper);
    for (;;) {
        (void)link_heartbeat(link, NULL); /* a dead supervisor: our own death comes */
        obey(&keeper);
        read_links(link, &keeper);
        pause_ns(LOOK_NS);
    }
}

/* The test. */

static void play_supervisor(void)
{
    const struct supervisor_config config = {.run_runtime = play_runtime, .title = ""};
    (void)close(stage.ticks);
    if (stage.board->stranger && fork() == 0) {
        (void)prctl(PR_SET_NAME, "stranger");
        for (;;)
            (void)pause();
    }
    if (stage.board->unprivileged &&
        (setgroups(0, NULL) < 0 || setresgid(STAGE_NOBODY, STAGE_NOBODY, STAGE_NOBODY) < 0 ||
         setresuid(STAGE_NOBODY, STAGE_NOBODY, STAGE_NOBODY) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
        _exit(9);
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

static pid_t find_below(pid_t pid, const char *name, bool self)
{
    char path[64];
    char text[4096] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    if (self && size > 1 && strncmp(text, name, (size_t)size - 1) == 0 &&
        strlen(name) == (size_t)size - 1)
        return pid;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    text[size > 0 ? size : 0] = '\0';
    char *end = NULL;
    for (char *at = text;; at = end) {
        pid_t child = (pid_t)strtol(at, &end, 10);
        if (end == at)
            return 0;
        pid_t found = find_below(child, name, true);
        if (found != 0)
            return found;
    }
}

/* Whom a test has left stopped must be able to see the end. */
static void let_go_on(void)
{
    static const char *const names[] = {"crown-supervise", "crown-runtime", "crown-keeper",
                                        "crown-warden"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        pid_t pid = find_below(getpid(), names[i], false);
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
    int64_t until_ns = clock_boottime_ns() + PATIENCE_NS;
    bool clean;
    let_go_on();
    if (stage.supervisor > 0)
        (void)kill(stage.supervisor, SIGKILL);
    while (!(clean = reap()) && clock_boottime_ns() < until_ns)
        pause_ns(LOOK_NS);
    rounds_kill_all();
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
            mount("proc", "/proc", "proc", 0, NULL) < 0)
            _exit(9);
        play_supervisor();
    }
    assert_true(stage.supervisor > 0);
}

static void hear(const struct tick *tick)
{
    if (tick->kind == TICK_SIGNALLED) {
        stage.last_signal = tick->detail;
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

/* @return whether nobody has the FIFO open for writing. */
static bool hear_all(void)
{
    struct tick tick;
    ssize_t got;
    while ((got = read(stage.ticks, &tick, sizeof(tick))) == (ssize_t)sizeof(tick))
        hear(&tick);
    return got == 0;
}

void stage_until(bool (*done)(void))
{
    int64_t until_ns = clock_boottime_ns() + PATIENCE_NS;
    for (;;) {
        (void)hear_all();
        (void)reap();
        if (done())
            return;
        if (clock_boottime_ns() > until_ns)
            fail_msg("what was waited for did not come");
        pause_ns(LOOK_NS);
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

void stage_until_gone(void)
{
    assert_true(stage.count[TICK_CHILD] > 0);
    stage_until(hear_all);
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

static const char *wanted_name;
static pid_t found_pid;

static bool found(void)
{
    found_pid = find_below(getpid(), wanted_name, false);
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

void stage_set_deadlines(int64_t stop_ns, int64_t kill_ns, int64_t deadline_ns)
{
    int64_t now = clock_boottime_ns();
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

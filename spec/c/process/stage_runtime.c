/* The runtime: does what the test's board tells it. */
#include "stage_parts.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "process/link.h"
#include "process/signals.h"

#define SELF "/proc/self/exe"

static struct link *line;
static struct keeper_link keepers[STAGE_MANY];
static unsigned used;
static bool reading = true;

static void note(const struct wire_message *message)
{
    int place = stage.board->logged;
    if (message->type == WIRE_STARTED)
        stage.board->started++;
    if (message->type == WIRE_START_FAILED ||
        (message->type == WIRE_KEEPER_FAILED && message->error != 0))
        stage.board->unstarted++;
    stage.board->stopped = stage.board->stopped || message->type == WIRE_STOP;
    if (place < STAGE_LOG_MOST) {
        stage.board->log[place] = *message;
        stage.board->logged = place + 1;
    }
}

static int take_lock(void)
{
    static int fd;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fd > 0)
        return fd;
    fd = open(stage.board->lock, O_RDWR | O_CLOEXEC | O_CREAT, 0600);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
        _exit(9);
    return fd;
}

static void start_child(void)
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
    while (stage.board->lock[0] != '\0' && spec.hold_count < CHILD_MAX_HOLD)
        spec.hold_fd[spec.hold_count++] = take_lock();
    spec.argv = argv;
    spec.envp = envp;
    spec.label = "test";
    if (link_start_child(line, &spec, &keepers[used++], NULL) < 0)
        _exit(9);
}

static void fork_stray(void)
{
    if (fork() != 0)
        return;
    (void)prctl(PR_SET_NAME, "stray");
    for (;;)
        (void)pause();
}

static void start_children(void)
{
    for (unsigned i = 0; i < stage.board->children || i == 0; i++)
        start_child();
    if (stage.board->forks)
        fork_stray();
}

static void work(void)
{
    const clock_t until = clock() + (clock_t)(STAGE_WORK_NS / (NS_PER_S / CLOCKS_PER_SEC));
    while (clock() < until)
        continue;
}

static void spin(void) __attribute__((noreturn));
static void spin(void)
{
    const clock_t began = clock();
    for (;;)
        stage.board->spun_ns = (clock() - began) * (NS_PER_S / CLOCKS_PER_SEC);
}

static void obey(void)
{
    const struct wire_message message = stage.board->order_message;
    struct keeper_link *keeper = &keepers[0];
    enum order order = (enum order)stage.board->order;
    if (order == ORDER_HANG || order == ORDER_SPIN || order == ORDER_NAP || order == ORDER_IDLE)
        stage.board->order = ORDER_NONE;
    switch (order) {
    case ORDER_NONE:
        return;
    case ORDER_START:
        reading = stage.board->children == 0;
        start_children();
        break;
    case ORDER_READ:
        reading = true;
        break;
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
        for (;;)
            (void)pause();
    case ORDER_SPIN:
        spin();
    case ORDER_IDLE:
        (void)link_heartbeat(line, clock_monotonic_ns() + STAGE_IDLE_NS, NULL);
        (void)pause();
        break;
    case ORDER_NAP:
        (void)pause(); /* until a signal is handled */
        break;
    case ORDER_SAY:
        (void)link_held(line, "unasked");
        break;
    case ORDER_WORK:
        work();
        break;
    case ORDER_DISARM:
        (void)link_arm(line, false, 0, NULL);
        break;
    case ORDER_CLOSE:
        keeper_link_close(keeper);
        break;
    }
    stage.board->order = ORDER_NONE;
}

static void wait_hello(void)
{
    struct wire_message hello;
    struct pollfd polled = {.fd = link_fd(line), .events = POLLIN};
    int run = stage.board->runs;
    do {
        if (poll(&polled, 1, -1) < 0 || link_receive(line, &hello, NULL) <= 0)
            _exit(9);
        note(&hello);
    } while (hello.type != WIRE_HELLO);
    if (run < 2)
        (void)memcpy(stage.board->token[run], hello.text, WIRE_TEXT);
    stage.board->restarts = hello.restarts;
    stage.board->runs = run + 1;
}

static void read_keeper(struct keeper_link *keeper)
{
    struct wire_message message;
    int got = 0;
    while (keeper->fd >= 0 && (got = keeper_link_receive(keeper, &message, NULL)) > 0)
        note(&message);
    if (keeper->fd >= 0 && got < 0)
        keeper_link_close(keeper);
}

static void read_links(void)
{
    struct wire_message message;
    while (link_receive(line, &message, NULL) > 0) {
        note(&message);
        if (message.type == WIRE_STOP && !stage.board->stay) {
            (void)link_arm(line, false, 0, NULL);
            _exit(5);
        }
    }
    for (unsigned i = 0; i < used; i++)
        read_keeper(&keepers[i]);
}

static void answer(int signal)
{
    (void)signal;
    (void)link_held(line, "on the stage");
}

int stage_play_runtime(int line_fd, int journal, void *context)
{
    (void)journal;
    (void)context;
    line = link_new(line_fd, NULL);
    if (line == NULL)
        _exit(9);
    if (stage.board->answers)
        (void)signal(SIGNAL_ASK, answer);
    wait_hello();
    if (stage.board->crash)
        _exit(3);
    if (stage.board->arm && link_arm(line, true, stage.board->silence_ns, NULL) < 0)
        _exit(9);
    if (stage.board->ready)
        link_prepare(line); /* whoever sees that keeper knows that it is armed */
    if (!stage.board->later)
        start_children();
    for (;;) {
        if (!stage.board->quiet)
            (void)link_heartbeat(line, 0, NULL); /* a dead supervisor: our own death comes */
        obey();
        if (reading)
            read_links();
        stage_pause(stage.board->slow ? STAGE_SLOW_NS : STAGE_LOOK_NS);
    }
}

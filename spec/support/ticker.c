/* A child that ticks: every millisecond a line "boottime_ns node epoch role pid life" is appended
 * to a file that all candidates share. `life` is when the child was started, and is handed on to
 * all that it starts: so the ticks of one child with its tree can be told from those of the next.
 *
 * ticker FILE [MODE], where MODE is
 *   plain     ticks
 *   seldom    ticks every ten milliseconds
 *   daemon    so does a daemonized descendant
 *   impostor  so does a daemonized descendant that is called as the runtime's processes are, and
 * its child stubborn  ignores SIGTERM, SIGINT and SIGHUP loose     holds no lock, and so do three
 * hundred daemonized descendants chain     holds no lock, and so do three hundred descendants, each
 * the parent of the next fork      a chain of processes ticks, each for ten ticks, each in a
 * session of its own */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 1000000L
#define NS_PER_S 1000000000LL
#define FORK_EVERY 10
#define LOOSE_MANY 300
#define LOOSE_PAUSE_NS 30000000L
#define SELDOM_PAUSE_NS 9000000L
/* One that a broken program has left behind ends by itself. */
#define LIFE_MOST_NS (300 * NS_PER_S)

static int fd;
static long long life;

static long long boottime(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        exit(1);
    return (long long)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "-";
}

static void tick(void)
{
    const struct timespec period = {0, PERIOD_NS};
    char line[256];
    long long now = boottime();
    if (now - life > LIFE_MOST_NS)
        exit(1);
    int length =
        snprintf(line, sizeof(line), "%lld %s %s %s %d %lld\n", now, variable("CROWN_NODE"),
                 variable("CROWN_EPOCH"), variable("CROWN_ROLE"), (int)getpid(), life);
    if (write(fd, line, (size_t)length) != length)
        exit(1);
    (void)nanosleep(&period, NULL);
}

static void tick_for_ever(void)
{
    for (;;)
        tick();
}

static void daemonize(void)
{
    if (fork() != 0)
        return;
    (void)setsid();
    if (fork() != 0)
        _exit(0);
    tick_for_ever();
}

static void impersonate(void)
{
    if (fork() != 0)
        return;
    (void)setsid();
    if (fork() != 0)
        _exit(0);
    (void)prctl(PR_SET_NAME, "crown-warden");
    (void)fork();
    tick_for_ever();
}

static void let_go_of_locks(void)
{
    for (int other = STDERR_FILENO + 1; other < 1024; other++)
        if (other != fd)
            (void)close(other);
}

static void tick_seldom(long pause_ns)
{
    const struct timespec pause = {0, pause_ns};
    for (;;) {
        tick();
        (void)nanosleep(&pause, NULL);
    }
}

/* Many, since it takes a while to kill them; seldom, since the ticks are read. */
static void loosen(void)
{
    for (int i = 0; i < LOOSE_MANY; i++) {
        if (fork() != 0)
            continue;
        (void)setsid();
        tick_seldom(LOOSE_PAUSE_NS);
    }
}

/* Who looks no further than to its own children has to look again for each. Returns in the first
 * one, when all are there. */
static void chain(void)
{
    int ends[2];
    char byte = 0;
    if (pipe(ends) < 0)
        exit(1);
    for (int i = 0; i < LOOSE_MANY; i++) {
        if (fork() == 0)
            continue;
        if (i > 0)
            tick_seldom(LOOSE_PAUSE_NS);
        if (read(ends[0], &byte, 1) != 1)
            exit(1);
        return;
    }
    if (write(ends[1], &byte, 1) != 1)
        exit(1);
    tick_seldom(LOOSE_PAUSE_NS);
}

static void fork_on(void)
{
    for (;;) {
        for (int i = 0; i < FORK_EVERY; i++)
            tick();
        if (fork() != 0)
            _exit(0);
        (void)setsid();
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[2] : "plain";
    if (argc < 2)
        return 2;
    life = boottime();
    fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return 1;
    if (strcmp(mode, "daemon") == 0)
        daemonize();
    if (strcmp(mode, "impostor") == 0)
        impersonate();
    if (strcmp(mode, "loose") == 0 || strcmp(mode, "chain") == 0)
        let_go_of_locks();
    if (strcmp(mode, "loose") == 0)
        loosen();
    if (strcmp(mode, "chain") == 0)
        chain();
    if (strcmp(mode, "seldom") == 0)
        tick_seldom(SELDOM_PAUSE_NS);
    if (strcmp(mode, "stubborn") == 0) {
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGINT, SIG_IGN);
        (void)signal(SIGHUP, SIG_IGN);
    }
    if (strcmp(mode, "fork") == 0) {
        if (fork() == 0)
            fork_on();
        for (;;)
            (void)pause();
    }
    tick_for_ever();
}

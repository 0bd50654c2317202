/* A child that ticks: every 10 ms a line "boottime_ns node epoch role pid" is appended to a file
 * that all candidates share. Modes: plain; daemon: a daemonized descendant ticks too; stubborn:
 * ignores SIGTERM; fork: a chain of processes, each living for one tick. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 10000000L

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "-";
}

static void tick(int fd)
{
    struct timespec now;
    char line[256];
    if (clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        exit(1);
    int length =
        snprintf(line, sizeof(line), "%lld %s %s %s %d\n",
                 (long long)now.tv_sec * 1000000000LL + now.tv_nsec, variable("CROWN_NODE"),
                 variable("CROWN_EPOCH"), variable("CROWN_ROLE"), (int)getpid());
    if (write(fd, line, (size_t)length) != length)
        exit(1);
}

static void tick_for_ever(int fd)
{
    const struct timespec period = {0, PERIOD_NS};
    for (;;) {
        tick(fd);
        (void)nanosleep(&period, NULL);
    }
}

static void daemonize(int fd)
{
    if (fork() != 0)
        return;
    (void)setsid();
    if (fork() != 0)
        _exit(0);
    tick_for_ever(fd);
}

static void fork_on(int fd)
{
    const struct timespec period = {0, PERIOD_NS};
    for (;;) {
        tick(fd);
        (void)nanosleep(&period, NULL);
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
    int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return 1;
    if (strcmp(mode, "daemon") == 0)
        daemonize(fd);
    if (strcmp(mode, "stubborn") == 0)
        (void)signal(SIGTERM, SIG_IGN);
    if (strcmp(mode, "fork") == 0) {
        if (fork() == 0)
            fork_on(fd);
        for (;;)
            (void)pause();
    }
    tick_for_ever(fd);
}

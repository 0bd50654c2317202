/* What a child plays: it ticks into the FIFO for as long as it lives. */
#include "stage_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
        stage_pause(STAGE_PERIOD_NS);
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

/* Each of a session of its own, and none holds a lock. */
static void gather(unsigned count)
{
    (void)close_range((unsigned)fifo_fd + 1, ~0u, 0);
    for (unsigned i = 0; i < count; i++)
        if (fork() == 0) {
            (void)setsid();
            for (;;)
                (void)pause();
        }
    daemonize(1);
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
    world.niceness = getpriority(PRIO_PROCESS, 0);
    (void)snprintf(path, sizeof(path), "%s.world", fifo);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (write(fd, &world, sizeof(world)) != (ssize_t)sizeof(world))
        _exit(1);
}

static void tell_signals(void)
{
    (void)signal(SIGINT, tell_signal);
    (void)signal(SIGTERM, tell_signal);
    (void)signal(SIGUSR1, tell_signal);
}

/* tick; family: ignores TERM, and another of its group tells of it; daemons: three daemons tick
 * too; crowd: one does, when a hundred others that sleep are there, and all let go of locks;
 * stubborn: tells of signals and goes on; ends: one daemon, ends itself with 7; quits: with 0, when
 * a file FIFO.quit is there; world: looks around first; root: becomes root, as sudo(8) does;
 * hidden: ignores TERM, and is hidden where /proc hides other users' processes. */
void stage_play_child(const char *mode, const char *fifo)
{
    if (strcmp(mode, "world") == 0)
        look_around(fifo);
    fifo_fd = open(fifo, O_WRONLY | O_CLOEXEC);
    if (fifo_fd < 0)
        _exit(1);
    if (strcmp(mode, "daemons") == 0)
        daemonize(3);
    if (strcmp(mode, "crowd") == 0)
        gather(100);
    if (strcmp(mode, "ends") == 0) {
        daemonize(1);
        for (int i = 0; i < 10; i++) {
            tell(TICK_CHILD, 0);
            stage_pause(STAGE_PERIOD_NS);
        }
        _exit(7);
    }
    if (strcmp(mode, "quits") == 0) {
        char sign[64];
        (void)snprintf(sign, sizeof(sign), "%s.quit", fifo);
        while (access(sign, F_OK) < 0) {
            tell(TICK_CHILD, 0);
            stage_pause(STAGE_PERIOD_NS);
        }
        _exit(0);
    }
    if (strcmp(mode, "hidden") == 0 &&
        (prctl(PR_SET_DUMPABLE, 0) < 0 || signal(SIGTERM, SIG_IGN) == SIG_ERR))
        _exit(1);
    if (strcmp(mode, "root") == 0 && setresuid(0, 0, 0) < 0)
        _exit(1);
    if (strcmp(mode, "stubborn") == 0)
        tell_signals();
    if (strcmp(mode, "family") == 0) {
        (void)signal(SIGTERM, SIG_IGN);
        if (fork() == 0) {
            tell_signals();
            tick_for_ever(TICK_DAEMON);
        }
    }
    tick_for_ever(TICK_CHILD);
}

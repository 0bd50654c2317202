#include "process/signals.h"

#include <stddef.h>
#include <sys/signalfd.h>

static sigset_t set_of(const int *signals, size_t count)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        (void)sigaddset(&set, signals[i]);
    return set;
}

static sigset_t of_keepers(void)
{
    static const int read[] = {SIGCHLD, SIGNAL_END};
    return set_of(read, sizeof(read) / sizeof(read[0]));
}

int signals_open(void)
{
    sigset_t all, set = of_keepers();
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_add_interrupt(int fd)
{
    sigset_t set = of_keepers();
    (void)sigaddset(&set, SIGINT);
    return signalfd(fd, &set, 0) < 0 ? -1 : 0;
}

int signals_open_supervisor(void)
{
    /* Who starts this program may ignore it, and that would be handed on: then no death is told. */
    (void)signal(SIGCHLD, SIG_DFL);
    /* In the background of a terminal with `stty tostop`, a line of the log would stop a leader. */
    (void)signal(SIGTTOU, SIG_IGN);
    static const int read[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,
                               SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    sigset_t set = set_of(read, sizeof(read) / sizeof(read[0]));
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

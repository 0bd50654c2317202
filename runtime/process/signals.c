#include "process/signals.h"

#include <stddef.h>
#include <sys/signalfd.h>

static sigset_t of_keepers(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGNAL_END);
    return set;
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
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGPIPE);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGUSR2);
    (void)sigaddset(&set, SIGALRM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

#include "process/signals.h"

#include <stddef.h>
#include <sys/signalfd.h>

int signals_open(void)
{
    sigset_t set;
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGNAL_END);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_open_supervisor(void)
{
    /* Who starts this program may ignore it, and that would be handed on: then no death is told. */
    (void)signal(SIGCHLD, SIG_DFL);
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

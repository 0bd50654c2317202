#include "process/terminal.h"

#include <signal.h>
#include <unistd.h>

#include "process/signals.h"

int terminal_take(pid_t parent)
{
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgid(parent))
        return 0; /* same (number): -1 alone means that it failed */
    /* In the background, tcsetpgrp raises SIGTTOU, which must be blocked to be let through:
     * tcsetpgrp(3). */
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return tcsetpgrp(STDIN_FILENO, getpgrp());
}

void terminal_give_back(pid_t group)
{
    if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != group)
        (void)tcsetpgrp(STDIN_FILENO, group); /* one that hung up has no foreground */
}

void terminal_listen(int signals, pid_t child)
{
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != child)
        return;
    if (setpgid(0, child) == 0)               /* else it is gone by now */
        (void)signals_add_interrupt(signals); /* fails for want of memory only */
}

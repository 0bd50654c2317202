#include "process/requests.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC); /* it never blocks */
    if (fd < 0)
        return false;
    (void)close(fd); /* nothing was written */
    return true;
}

static bool is_ignored(int signal)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(signal, NULL, &action); /* it fails for a number that is none only */
    return action.sa_handler == SIG_IGN;
}

void requests_init(struct requests *requests)
{
    *requests = (struct requests){.terminal = -1};
    requests->from_terminal = has_terminal() && !is_ignored(SIGHUP);
    /* No descriptor of its own: some who own a terminal wait until nobody has it open. */
    for (int fd = 2; fd >= 0 && requests->from_terminal; fd--)
        if (tcgetsid(fd) >= 0)
            requests->terminal = fd;
}

void requests_keep(struct requests *requests)
{
    requests->from_terminal = false;
    requests->terminal = -1;
}

enum request requests_signal(struct requests *requests, int signal, int64_t now_ns)
{
    if (signal == SIGHUP)
        return requests->from_terminal ? REQUEST_STOP : REQUEST_NONE;
    if (signal != SIGINT)
        return REQUEST_STOP;
    if (!requests->interrupted)
        requests->interrupted_ns = now_ns;
    requests->interrupted = true;
    return now_ns - requests->interrupted_ns >= REQUESTS_SAME_NS ? REQUEST_END : REQUEST_STOP;
}

enum request requests_hangup(struct requests *requests)
{
    requests->terminal = -1;
    return requests->from_terminal ? REQUEST_STOP : REQUEST_NONE;
}

/**
 * The signals that supervisor, keepers and wardens act on, as a descriptor to poll, and what they
 * say to each other by signals. Nothing that a terminal, timeout(1) or a service manager sends to a
 * whole group ends keepers and wardens: they outlive it, and step down in order.
 */
#ifndef CROWN_PROCESS_SIGNALS_H
#define CROWN_PROCESS_SIGNALS_H

#include <signal.h>

/** To a keeper or a warden, from the kernel: your parent is dead. Kill the tree and end. It is
 * SIGCONT, since that also awakens one that is stopped. Others send it too (timeout(1), shells,
 * service managers), so look whether the parent is dead indeed. */
#define SIGNAL_END SIGCONT
/** To a silent runtime: say what you are doing (HELD). SIGRTMIN + 3 is the runtime's own. */
#define SIGNAL_ASK (SIGRTMIN + 5)

/** Of a keeper or a warden: blocks every signal; SIGCHLD and SIGNAL_END are read from the
 * descriptor.
 * @return it, or -1 with errno. */
int signals_open(void);

/** From now on a keeper reads SIGINT, too. @return 0, or -1 with errno. */
int signals_add_interrupt(int fd);

/** Of the supervisor: SIGCHLD, SIGTERM, SIGINT and SIGHUP (process/requests.h); and others, which
 * end nothing and are passed on to nobody. @return it, or -1 with errno. */
int signals_open_supervisor(void);

#endif

#include "process/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "process/child_spec.h"
#include "process/keeper.h"
#include "process/realtime.h"
#include "process/signals.h"
#include "process/title.h"

/* The terminal sends its signals to the whole group; only the supervisor acts on them. */
static void leave_signals_to_supervisor(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGTSTP, SIGQUIT,
                                  SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)signal(SIGNAL_ASK, SIG_IGN); /* until there is something to say */
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void become_runtime(const struct supervisor_config *config, int line, int journal_fd,
                           pid_t supervisor)
{
    realtime_leave();
    leave_signals_to_supervisor();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != supervisor)
        _exit(1);
    title_set("crown-runtime", config->title);
    exit(config->run_runtime(line, journal_fd, config->context));
}

pid_t launch_runtime(const struct supervisor_config *config, int journal_fd, int signals_fd,
                     int *line, struct crown_error *err)
{
    int ends[2];
    pid_t self = getpid();
    if (wire_pair(ends, err) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)close(signals_fd);
        become_runtime(config, ends[1], journal_fd, self);
    }
    int saved = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return error_set_errno(err, saved, "start the runtime: fork");
    }
    *line = ends[0];
    return pid;
}

unsigned launch_keeper(struct keepers *keepers, const struct wire_message *message, const int *fds,
                       unsigned nfds)
{
    unsigned holds = message->holds;
    /* The first two are closed again: so the supervisor always has some for what it opens. */
    if (holds > CHILD_MAX_HOLD || nfds < 2 + holds) {
        keepers_add_failed(keepers, message->id, EMFILE);
        return nfds;
    }
    if (!keepers_room(keepers)) {
        keepers_add_failed(keepers, message->id, EAGAIN);
        return nfds;
    }
    const struct keeper_home home = {.supervisor = getpid(),
                                     .warden = keepers_next_warden(keepers)};
    pid_t pid = fork();
    if (pid == 0)
        keeper_run(fds[0], fds + 1, nfds - 1, &home);
    if (pid < 0) {
        keepers_add_failed(keepers, message->id, errno);
        return nfds;
    }
    keepers_add(keepers, pid, message->id, fds + nfds - holds, holds);
    return nfds - holds;
}

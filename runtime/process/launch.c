#include "process/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "process/child_spec.h"
#include "process/keeper.h"
#include "process/libraries.h"
#include "process/plain_fork.h"
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
                     struct wills *wills, int *line, struct crown_error *err)
{
    int ends[2];
    pid_t self = getpid();
    if (wire_pair(ends, err) < 0)
        return -1;
    libraries_hand_on(true);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)close(signals_fd);
        wills_drop(wills);
        become_runtime(config, ends[1], journal_fd, self);
    }
    int saved = errno;
    libraries_hand_on(false);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return error_set(err, ERROR_SYSTEM, "start the runtime: fork: %s", error_of_start(saved));
    }
    *line = ends[0];
    return pid;
}

void launch_prepare(struct keepers *keepers, struct launch_spare *spare)
{
    int ends[2];
    struct crown_error err;
    if (spare->pid != 0 || !keepers_room(keepers) || wire_pair(ends, &err) < 0)
        return; /* a keeper is forked when it is needed */
    const struct keeper_home home = {.supervisor = getpid(),
                                     .warden = keepers_next_warden(keepers)};
    pid_t pid = plain_fork(0, NULL);
    if (pid == 0)
        keeper_wait(ends[1], &home);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return;
    }
    *spare = (struct launch_spare){.pid = pid, .line = ends[0]};
    keepers_add(keepers, pid);
}

void launch_forget(struct launch_spare *spare)
{
    if (spare->pid != 0)
        (void)close(spare->line);
    spare->pid = 0;
}

/* @return its pid; 0 where it could not be given the child. */
static pid_t give_to_spare(struct launch_spare *spare, const struct wire_message *message,
                           const int *fds, unsigned nfds)
{
    pid_t pid = spare->pid;
    if (pid == 0 || wire_send(spare->line, message, fds, nfds, NULL) < 0)
        pid = 0;
    else
        (void)kill(pid, SIGCONT); /* somebody may have stopped it while it waited */
    launch_forget(spare);
    return pid;
}

static pid_t fork_keeper(struct keepers *keepers, const int *fds, unsigned nfds)
{
    const struct keeper_home home = {.supervisor = getpid(),
                                     .warden = keepers_next_warden(keepers)};
    pid_t pid = plain_fork(0, NULL);
    if (pid == 0)
        keeper_run(fds, nfds, &home);
    if (pid > 0)
        keepers_add(keepers, pid);
    return pid;
}

unsigned launch_keeper(struct keepers *keepers, struct launch_spare *spare,
                       const struct wire_message *message, const int *fds, unsigned nfds)
{
    unsigned holds = message->holds;
    /* The first two are closed again: so the supervisor always has some for what it opens. */
    if (holds > CHILD_MAX_HOLD || nfds < 2 + holds) {
        keepers_add_failed(keepers, message->id, EMFILE);
        return nfds;
    }
    pid_t pid = give_to_spare(spare, message, fds, nfds);
    if (pid == 0 && !keepers_room(keepers)) {
        keepers_add_failed(keepers, message->id, KEEPERS_ERROR_MANY);
        return nfds;
    }
    if (pid == 0)
        pid = fork_keeper(keepers, fds, nfds);
    if (pid < 0) {
        keepers_add_failed(keepers, message->id, errno);
        return nfds;
    }
    keepers_assign(keepers, pid, message->id, fds + nfds - holds, holds);
    return nfds - holds;
}

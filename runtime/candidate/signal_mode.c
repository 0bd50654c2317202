/* Signal mode: a command that lives from term to term, told by SIGUSR1 that it leads and by SIGUSR2
 * that it does not any more. To the core its child ends with the term; here it only steps aside. */
#include "candidate/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "host/host.h"

#define HANDLER_WAIT_NS (5 * NS_PER_S)
/* A shell runs the traps of signals that came together in the order of their numbers, when its
 * foreground command is over: "won" must not come so soon after "lost" that it is taken first. */
#define SETTLE_NS (5 * NS_PER_S)
#define HANDLER_LOOK_NS (5 * NS_PER_MS)

/* A mask of /proc/PID/status, such as "SigCgt:"; 0 when there is no such process. */
static unsigned long long read_mask(pid_t pid, const char *key)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            mask = strtoull(line + strlen(key), NULL, 16);
    (void)fclose(file); /* read only */
    return mask;
}

static unsigned long long bit_of(int signal)
{
    return 1ULL << (signal - 1);
}

/* Whether a signal would end the process. An interactive shell, which ignores TERM and the stops,
 * catches what would end it only to tidy up before it goes. */
static bool is_deadly(pid_t pid, int signal)
{
    const unsigned long long shell = bit_of(SIGTERM) | bit_of(SIGTSTP) | bit_of(SIGTTOU);
    unsigned long long ignored = read_mask(pid, "SigIgn:");
    if ((ignored & bit_of(signal)) != 0)
        return false;
    return (ignored & shell) == shell || (read_mask(pid, "SigCgt:") & bit_of(signal)) == 0;
}

static void give_up(struct candidate_child *child)
{
    log_warn("%s: the command has no handler for %s, which would end it: not sent",
             child->candidate->name, child->signal == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
    child->signal = 0;
}

static void look(struct loop_deadline *timer)
{
    struct candidate_child *child = container_of(timer, struct candidate_child, signal_timer);
    struct loop *loop = host_loop(child->candidate->host);
    if (child->signal == 0 || child->exited)
        return;
    if (child->signal == SIGUSR1 && loop_now(loop) < child->settled_ns) {
        loop_at(loop, timer, child->settled_ns);
        return;
    }
    if (!is_deadly(child->process.pid, child->signal)) {
        process_signal(&child->process, child->signal);
        child->signal = 0;
    } else if (loop_now(loop) >= child->signal_until_ns) {
        give_up(child);
    } else {
        loop_at(loop, timer, clock_add_ns(loop_now(loop), HANDLER_LOOK_NS));
    }
}

/* Sends a signal as soon as the command has a handler for it, so that it never kills one that has
 * none. A later signal takes the place of one that still waits. */
void standing_tell(struct candidate_child *child, int signal)
{
    int64_t now = loop_now(host_loop(child->candidate->host));
    if (signal == SIGUSR2)
        child->settled_ns = clock_add_ns(now, SETTLE_NS);
    child->signal = signal;
    child->signal_until_ns =
        clock_add_ns(now > child->settled_ns ? now : child->settled_ns, HANDLER_WAIT_NS);
    child->signal_timer.fire = look;
    look(&child->signal_timer);
}

/* A new term. @return whether there is a command that lives on from an earlier one. */
bool standing_take_up(struct candidate *candidate, const struct election_action *action)
{
    if (candidate->standing == NULL || action->role != ELECTION_ROLE_LEADER)
        return false;
    candidate->child = candidate->standing;
    candidate->standing = NULL;
    candidate->child->stop_requested = false;
    child_set_deadline(candidate, action);
    standing_tell(candidate->child, SIGUSR1);
    candidate_feed_type(candidate, ELECTION_EVENT_CHILD_STARTED);
    return true;
}

/* A term's end.
 * @return false when the command is to be stopped instead: not in signal mode, or the election
 * ends. */
bool standing_leave(struct candidate *candidate, int64_t kill_at_ns)
{
    struct candidate_child *child = candidate->child;
    const struct child_options *options = child_options_of(candidate, child);
    const struct election *election = &candidate->election;
    if (!options->signalled || child->role != ELECTION_ROLE_LEADER || election->stop)
        return false;
    standing_tell(child, SIGUSR2);
    if (options->fence && election->ours) {
        /* The lease is about to be released: the fence has to come down before. */
        process_set_deadline(&child->process, TIME_NEVER, kill_at_ns, kill_at_ns);
        return true;
    }
    process_set_deadline(&child->process, TIME_NEVER,
                         options->fence ? election->kill_at_ns : TIME_NEVER,
                         options->fence ? election->deadline_ns : TIME_NEVER);
    candidate->standing = child;
    candidate->child = NULL;
    const struct election_event gone = {.type = ELECTION_EVENT_CHILD_GONE, .child = {.kept = true}};
    candidate_feed(candidate, &gone);
    return true;
}

/* The command ended between two terms. */
void standing_gone(struct candidate *candidate)
{
    if (candidate->asked_to_stop || candidate->election.config.restart == ELECTION_RESTART_FINISH)
        candidate_feed_type(candidate, ELECTION_EVENT_STOP);
}

/* The election is to end. @return whether a command has to end first: then standing_gone goes on.
 */
bool standing_stop(struct candidate *candidate)
{
    const struct election *election = &candidate->election;
    if (candidate->standing == NULL || candidate->standing->exited)
        return false;
    candidate->standing->stop_requested = true;
    int64_t patience_ns =
        election->schedule.stop_timeout_ns > 0 ? election->schedule.stop_timeout_ns : 5 * NS_PER_S;
    process_stop(&candidate->standing->process,
                 clock_add_ns(loop_now(host_loop(candidate->host)), patience_ns));
    return true;
}

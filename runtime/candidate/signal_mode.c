#include "candidate/signal_mode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "candidate/env.h"
#include "candidate/epoch_file.h"
#include "candidate/feed.h"
#include "candidate/state.h"

#define HANDLER_WAIT_NS (5 * NS_PER_S)
/* A shell runs the traps of signals that came together in the order of their numbers, when its
 * foreground command is over: "won" must not come so soon after "lost" that it is taken first. */
#define SETTLE_NS (5 * NS_PER_S)
#define HANDLER_LOOK_NS (5 * NS_PER_MS)

/* An interactive bash catches what would end it before it ignores TERM and the stops, and readline
 * catches TERM for a moment now and then: what may be one is looked at once more. */
#define DOUBT_NS NS_PER_S

#define BIT(signal) (1ULL << ((signal)-1))

struct masks {
    unsigned long long ignored, caught;
};

/* Both as they were in one moment; 0 when there is no such process. */
static struct masks read_masks(pid_t pid)
{
    struct masks masks = {0, 0};
    char path[64], line[256];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return masks;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "SigIgn:", 7) == 0)
            masks.ignored = strtoull(line + 7, NULL, 16);
        else if (strncmp(line, "SigCgt:", 7) == 0)
            masks.caught = strtoull(line + 7, NULL, 16);
    }
    (void)fclose(file); /* read only */
    return masks;
}

/* Bash catches all that would end it in order to tidy up before it goes: an interactive one, and
 * one whose script has a trap for EXIT. Whether that script has one for SIGUSR1 too does not show.
 */
static bool tidies_up(struct masks masks)
{
    const unsigned long long all = BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGALRM) | BIT(SIGVTALRM) |
                                   BIT(SIGXCPU) | BIT(SIGXFSZ) | BIT(SIGSYS);
    return (masks.caught & all) == all;
}

/* Whether a signal would end the process. An interactive shell ignores TERM and the stops. */
static bool is_deadly(struct masks masks, int signal)
{
    const unsigned long long shell = BIT(SIGTERM) | BIT(SIGTSTP) | BIT(SIGTTOU);
    if ((masks.ignored & BIT(signal)) != 0)
        return false;
    return (masks.ignored & shell) == shell || (masks.caught & BIT(signal)) == 0;
}

static const char *name_of(int signal)
{
    static const char *const names[] = {
        [SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",   [SIGQUIT] = "SIGQUIT", [SIGKILL] = "SIGKILL",
        [SIGUSR1] = "SIGUSR1", [SIGUSR2] = "SIGUSR2", [SIGTERM] = "SIGTERM"};
    bool known = signal >= 0 && (size_t)signal < sizeof(names) / sizeof(names[0]);
    return known && names[signal] != NULL ? names[signal] : "its stop signal";
}

static void give_up(struct workload *workload)
{
    if (workload_options(workload)->signalled)
        log_warn("%s: the command has no handler for %s, which would end it: not sent",
                 workload->candidate->name, name_of(workload->signal));
    workload->signal = 0;
}

void signal_mode_sent(const struct workload *workload, int signal)
{
    const char *name = workload->candidate->name;
    if (workload->child.pid > 0)
        log_info("%s: sent %s to %d", name, name_of(signal), (int)workload->child.pid);
    else /* the keeper has not said yet that it runs */
        log_info("%s: sent %s to its command", name, name_of(signal));
}

enum when { NOW, LATER, NOT_KNOWN };

static enum when when_to_send(struct workload *workload, int64_t now)
{
    if (workload->signal == SIGUSR1 && now < workload->settled_ns)
        return LATER;
    const struct masks masks = read_masks(workload->child.pid);
    if (is_deadly(masks, workload->signal))
        return NOT_KNOWN;
    if (workload->signal != SIGUSR1 || !tidies_up(masks) || workload->doubted)
        return NOW;
    workload->doubted = true;
    workload->settled_ns = clock_add_ns(now, DOUBT_NS);
    return LATER;
}

static void look(struct loop_deadline *timer)
{
    struct workload *workload = container_of(timer, struct workload, signal_timer);
    struct loop *loop = workload->candidate->env->loop;
    int64_t now = loop_now(loop);
    if (workload->signal == 0 || workload->exited)
        return;
    enum when when = when_to_send(workload, now);
    if (when == NOW) {
        child_signal(&workload->child, workload->signal);
        signal_mode_sent(workload, workload->signal);
        workload->signal = 0;
    } else if (when == LATER) {
        loop_at(loop, timer, workload->settled_ns);
    } else if (now >= workload->signal_until_ns) {
        give_up(workload);
    } else {
        loop_at(loop, timer, clock_add_ns(now, HANDLER_LOOK_NS));
    }
}

void signal_mode_tell(struct workload *workload, int signal)
{
    int64_t now = loop_now(workload->candidate->env->loop);
    if (signal == SIGUSR2)
        workload->settled_ns = clock_add_ns(now, SETTLE_NS);
    workload->signal = signal;
    workload->doubted = false;
    workload->signal_until_ns =
        clock_add_ns(now > workload->settled_ns ? now : workload->settled_ns, HANDLER_WAIT_NS);
    workload->signal_timer.fire = look;
    look(&workload->signal_timer);
}

bool signal_mode_take_up(struct candidate *candidate)
{
    if (candidate->commands->standing == NULL)
        return false;
    candidate->commands->workload = candidate->commands->standing;
    candidate->commands->standing = NULL;
    candidate->commands->workload->stop_requested = candidate->commands->workload->unfenced = false;
    candidate->commands->workload->stopped = false;
    scope_move(&candidate->commands->workload->member, candidate->term->scope);
    return true;
}

bool signal_mode_leave(struct candidate *candidate, int64_t kill_at_ns)
{
    struct workload *workload = candidate->commands->workload;
    const struct child_options *options = workload_options(workload);
    const struct election *election = &candidate->election;
    if (!options->signalled || workload->role != ELECTION_ROLE_LEADER || election->stop)
        return false;
    if (!options->fence && is_deadly(read_masks(workload->child.pid), SIGUSR2)) {
        workload->unfenced = true;
        const struct log_field pid = log_integer("pid", workload->child.pid);
        telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_CHILD_UNFENCED,
                       &pid, 1);
    }
    epoch_file_clear(options->epoch_file);
    signal_mode_tell(workload, SIGUSR2);
    if (options->fence && election->hold != ELECTION_HOLD_NO) {
        /* The lease is about to be released: the fence has to come down before, however long that
         * is still refreshed. */
        workload->fenced = true;
        child_set_deadline(&workload->child, TIME_NEVER, kill_at_ns, kill_at_ns);
        return true;
    }
    child_set_deadline(&workload->child, TIME_NEVER,
                       options->fence ? election->kill_at_ns : TIME_NEVER,
                       options->fence ? election->deadline_ns : TIME_NEVER);
    candidate->commands->standing = workload;
    candidate->commands->workload = NULL;
    scope_move(&workload->member, candidate_scope(candidate));
    const struct election_event gone = {.type = ELECTION_EVENT_CHILD_GONE, .child = {.kept = true}};
    candidate_feed(candidate, &gone);
    return true;
}

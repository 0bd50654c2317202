/* The child: started once per term, restarted by the user's policy, stopped with the term. */
#include "base/clock.h"
#include "election/internal.h"

bool child_due(const struct step *step)
{
    const struct election *election = step->election;
    return !election->child.running && step->now >= election->child.start_at_ns;
}

void child_begin(struct step *step, enum election_role role)
{
    struct election *election = step->election;
    election->child.running = true;
    election->child.role = role;
    election->child.start_at_ns = TIME_NEVER;
    struct election_action *action = step_act(step, ELECTION_ACTION_START_CHILD);
    action->role = role;
    /* Of the lease; a follower has none, and these are never. */
    action->stop_at_ns = election->stop_at_ns;
    action->kill_at_ns = election->kill_at_ns;
    action->deadline_ns = election->deadline_ns;
}

void child_end(struct step *step)
{
    struct election *election = step->election;
    election->child.start_at_ns = TIME_NEVER;
    if (!election->child.running || election->child.stopping)
        return;
    election->child.stopping = true;
    /* The keeper takes the earlier of this and the lease's own kill instant, which refreshes move
     * on. */
    step_act(step, ELECTION_ACTION_STOP_CHILD)->kill_at_ns = clock_add_ns(
        step->now, election->stop_timeout_ns > 0 ? election->stop_timeout_ns : 5 * NS_PER_S);
}

/* Of about 67 ms, of which 32 bits last for nine years: what is counted is restarts within seconds
 * or more. */
static uint32_t ticks(int64_t ns)
{
    return (uint32_t)(ns >> 26);
}

/* Notes a restart. @return false when they are used up. */
static bool restart_allowed(struct step *step)
{
    struct election *election = step->election;
    uint32_t now = ticks(step->now), within = ticks(election->config->restart_within_ns);
    uint32_t *restarted = election->child.restarted;
    unsigned kept = 0;
    for (unsigned i = 0; i < election->child.restarts; i++)
        if (now - restarted[i] <= within)
            restarted[kept++] = restarted[i];
    election->child.restarts = (uint8_t)kept;
    if (restarted == NULL || kept >= election->config->restart_max || kept >= ELECTION_MAX_RESTARTS)
        return false;
    restarted[election->child.restarts++] = now;
    return true;
}

static void restart(struct step *step)
{
    struct election *election = step->election;
    int64_t pause = election->config->restart_backoff_first_ns;
    for (unsigned i = 1; i < election->child.restarts; i++)
        pause = earlier(pause * 2, election->config->restart_backoff_most_ns);
    election->child.start_at_ns = clock_add_ns(step->now, pause);
}

static enum child_outcome leader_ended(struct step *step)
{
    struct election *election = step->election;
    enum election_restart policy = election->config->restart;
    if (step->event->child.untold)
        return CHILD_FAILED;
    if (policy == ELECTION_RESTART_FINISH)
        return step->event->child.killed ? CHILD_KILLED : CHILD_ENDS;
    if (step->event->child.unstartable)
        return CHILD_FAILED;
    if (!step->event->child.failed && policy != ELECTION_RESTART_PERMANENT)
        return CHILD_GOES_ON; /* its work is done */
    if (policy == ELECTION_RESTART_TEMPORARY || !restart_allowed(step))
        return CHILD_FAILED;
    restart(step);
    return CHILD_GOES_ON;
}

/* A follower's child that fails costs nobody the leadership: it is tried again later. */
static void follower_ended(struct step *step)
{
    struct election *election = step->election;
    enum election_restart policy = election->config->restart;
    if (!step->event->child.failed && policy != ELECTION_RESTART_PERMANENT)
        return;
    bool is_over = policy == ELECTION_RESTART_FINISH && !step->event->child.killed;
    if (policy == ELECTION_RESTART_TEMPORARY || is_over)
        return;
    if (!step->event->child.unstartable && restart_allowed(step)) {
        restart(step);
        return;
    }
    election->child.restarts = 0;
    election->child.start_at_ns = clock_add_ns(step->now, election->config->restart_within_ns);
}

enum child_outcome child_ended(struct step *step)
{
    struct election *election = step->election;
    bool leader = election->child.role == ELECTION_ROLE_LEADER;
    /* From stop_at on the keeper stops it, whether or not we have got that far. */
    bool asked = election->child.stopping || (leader && step->now >= election->stop_at_ns);
    if (!election->child.running)
        return CHILD_GOES_ON;
    election->child.running = election->child.stopping = false;
    /* It was ended with its term; its purpose was not. */
    if (asked || election->phase == ELECTION_STEPPING)
        return CHILD_GOES_ON;
    if (leader)
        return leader_ended(step);
    follower_ended(step);
    return CHILD_GOES_ON;
}

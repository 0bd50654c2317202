#include "candidate/status.h"

#include <math.h>

#include "candidate/env.h"
#include "candidate/state.h"

bool candidate_finished(const struct candidate *candidate)
{
    return candidate->ended;
}

const char *candidate_name(const struct candidate *candidate)
{
    return candidate->name;
}

const char *candidate_node(const struct candidate *candidate)
{
    const char *own = candidate_own_node(candidate);
    return own != NULL ? own : candidate->env->node;
}

bool candidate_is_of(const struct candidate *candidate, const char *node)
{
    const char *own = candidate_own_node(candidate);
    return node != NULL ? own != NULL && strcmp(own, node) == 0 : own == NULL;
}

const char *candidate_store(const struct candidate *candidate)
{
    return candidate->store;
}

const char *candidate_oracle(const struct candidate *candidate)
{
    return candidate->oracle;
}

#define UNKNOWN_TTL_NS (30 * NS_PER_S)

/* Until when the leader holds by the store's last answer. Where that did not say (etcd, an advisory
 * lock), until its lease would have ended if it was refreshed at that moment. */
static int64_t leader_holds_until(const struct candidate *candidate)
{
    if (candidate->leader_expires_ns != TIME_NEVER || candidate->answered_ns == TIME_NEVER)
        return candidate->leader_expires_ns;
    int64_t ttl_ns = candidate->election.config->ttl_ns;
    return clock_add_ns(candidate->answered_ns, ttl_ns > 0 ? ttl_ns : UNKNOWN_TTL_NS);
}

/* Whoever led before the store fell silent is not known to lead when the lease has run out. */
static bool leader_is_outdated(const struct candidate *candidate)
{
    return candidate->outage != NULL &&
           leader_holds_until(candidate) <= loop_now(candidate->env->loop);
}

static void tell_outage(const struct outage *outage, struct candidate_status *status)
{
    status->failure = outage != NULL ? outage->failure : NULL;
    status->answers = outage != NULL && outage->answers;
    status->failing_since_ns = outage != NULL ? outage->since_ns : TIME_NEVER;
}

static void tell_commands(const struct commands *commands, struct candidate_status *status)
{
    static const struct commands none;
    if (commands == NULL)
        commands = &none;
    const struct workload *workload =
        commands->workload != NULL ? commands->workload : commands->standing;
    status->child_pid = workload != NULL ? workload->child.pid : 0;
    status->child_lives_on = workload != NULL && workload == commands->standing;
    status->child_unfenced = workload != NULL && workload->unfenced;
    status->child_ended = commands->ended;
    status->child_status = commands->status;
    status->child_is_leader =
        commands->workload != NULL && commands->workload->role == ELECTION_ROLE_LEADER;
}

void candidate_status(const struct candidate *candidate, struct candidate_status *status)
{
    status->view = election_look(&candidate->election);
    bool holding = status->view.phase == ELECTION_LEADING || status->view.phase == ELECTION_COOLING;
    status->leader = holding ? candidate_node(candidate) : candidate->leader;
    status->leader_epoch = holding ? status->view.epoch : candidate->leader_epoch;
    status->expires_at_ns = holding ? status->view.deadline_ns : candidate->leader_expires_ns;
    if (!holding && leader_is_outdated(candidate)) {
        status->leader = NULL;
        status->expires_at_ns = TIME_NEVER;
    }
    status->doubted = candidate->doubted && !holding;
    status->answered_ns = candidate->answered_ns;
    tell_outage(candidate->outage, status);
    tell_commands(candidate->commands, status);
}

double candidate_term_remaining(const struct candidate *candidate, uint64_t epoch)
{
    struct election_view view = election_look(&candidate->election);
    if (!view.acting || view.epoch != epoch)
        return 0;
    if (view.deadline_ns == TIME_NEVER)
        return INFINITY;
    int64_t left_ns = view.deadline_ns - loop_now(candidate->env->loop);
    return left_ns > 0 ? clock_seconds_from_ns(left_ns) : 0;
}

int64_t candidate_deadline(const struct candidate *candidate)
{
    return election_look(&candidate->election).deadline_ns;
}

const char *candidate_phase_name(enum election_phase phase)
{
    switch (phase) {
    case ELECTION_INIT:
        return "init";
    case ELECTION_COOLING:
        return "cooling";
    case ELECTION_LEADING:
        return "leading";
    case ELECTION_STEPPING:
    case ELECTION_FINISHED:
        return "finishing";
    default:
        return "following";
    }
}

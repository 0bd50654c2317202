#include "candidate/leader.h"

#include <string.h>

#include "base/shared.h"
#include "candidate/env.h"
#include "candidate/handlers.h"
#include "candidate/state.h"
#include "candidate/status.h"
#include "loop/loop.h"

static bool same(const char *one, const char *other)
{
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

void leader_remember(struct candidate *candidate, const char *node, uint64_t epoch,
                     int64_t expires_ns)
{
    if (!same(node, candidate->leader)) {
        shared_release(candidate->leader);
        candidate->leader = shared_text(node);
    }
    candidate->leader_epoch = epoch;
    candidate->leader_expires_ns =
        expires_ns >= 0 ? clock_add_ns(loop_now(candidate->env->loop), expires_ns) : TIME_NEVER;
}

void leader_forget_own(struct candidate *candidate)
{
    if (same(candidate->leader, candidate_node(candidate)))
        leader_remember(candidate, NULL, candidate->leader_epoch, -1);
}

/* An epoch that comes to be known later is no other leader. */
static bool is_news(const struct told *told, const struct candidate_status *status)
{
    if (!same(told->leader, status->leader))
        return true;
    return status->leader_epoch > told->epoch && told->epoch != 0;
}

void leader_tell(struct candidate *candidate)
{
    struct told *told = &candidate->told;
    struct candidate_status status;
    candidate_status(candidate, &status);
    if (status.leader == NULL || status.view.phase == ELECTION_COOLING)
        return;
    if (!is_news(told, &status)) {
        if (status.leader_epoch > told->epoch)
            told->epoch = status.leader_epoch;
        return;
    }
    shared_release(told->leader);
    told->leader = shared_text(status.leader);
    told->epoch = status.leader_epoch;
    bool own = status.view.phase == ELECTION_LEADING;
    candidate->env->telling.leader = true;
    telemetry_emit_at(candidate->env->telemetry, own ? LOG_DEBUG : LOG_INFO, &candidate->source,
                      TELEMETRY_LEADERSHIP_CHANGED, NULL, 0);
    candidate->env->telling.leader = false;
    handlers_leader(candidate, status.leader, status.leader_epoch);
}

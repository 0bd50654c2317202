#include "candidate/owed.h"

#include "candidate/env.h"
#include "candidate/feed.h"
#include "candidate/journal.h"
#include "candidate/state.h"

static void tell(struct candidate *candidate, uint64_t epoch)
{
    const struct log_field reason =
        log_string("reason", election_reason_name(ELECTION_REASON_RUNTIME_DIED));
    candidate->env->telling.lost = epoch;
    telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_LEADERSHIP_LOST,
                   &reason, 1);
    candidate->env->telling.lost = 0;
}

/* @return whether `lost` is owed. */
static bool tell_of_dead_runtime(struct candidate *candidate)
{
    const uint64_t led = journal_get(candidate->env->journal, candidate_key(candidate));
    if (led == 0)
        return false;
    tell(candidate, led & ~JOURNAL_UNTOLD);
    if (candidate->has_lost && (led & JOURNAL_UNTOLD) == 0)
        return true;
    journal_set(candidate->env->journal, candidate_key(candidate), 0);
    return false;
}

void owed_start(struct candidate *candidate)
{
    candidate_feed_type(candidate, tell_of_dead_runtime(candidate) ? ELECTION_EVENT_START_OWING
                                                                   : ELECTION_EVENT_START);
}

void owed_stop(struct candidate *candidate)
{
    if (tell_of_dead_runtime(candidate))
        candidate_feed_type(candidate, ELECTION_EVENT_START_OWING);
}

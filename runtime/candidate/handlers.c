#include "candidate/handlers.h"

#include "candidate/feed.h"
#include "candidate/perform.h"
#include "candidate/state.h"
#include "candidate/status.h"

static void campaign_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    (void)nresults;
    if (outcome == TASK_FAILED)
        perform_failed(context, TELEMETRY_HANDLER_ERROR, "campaign",
                       lua_tostring(task_state(task), -1));
}

void handlers_campaign(struct candidate *candidate)
{
    if (!candidate->has_campaign)
        return;
    lua_State *L = perform_push(candidate, "campaign");
    lua_pushstring(L, candidate_phase_name(election_look(&candidate->election).phase));
    (void)perform_spawn(candidate, 1, &candidate->calls, campaign_done);
}

static void won_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    (void)nresults;
    candidate->won = NULL;
    if (outcome != TASK_FAILED)
        return;
    perform_failed(candidate, TELEMETRY_HANDLER_ERROR, "won", lua_tostring(task_state(task), -1));
    candidate_feed_type(candidate, ELECTION_EVENT_WON_FAILED);
}

void handlers_won(struct candidate *candidate, uint64_t epoch)
{
    if (!candidate->has_won)
        return;
    lua_State *L = perform_push(candidate, "won");
    lua_pushnumber(L, (lua_Number)epoch);
    candidate->won = perform_spawn(candidate, 1, &candidate->term, won_done);
    if (candidate->won == NULL)
        candidate_feed_type(candidate, ELECTION_EVENT_WON_FAILED);
}

static void lost_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    (void)nresults;
    candidate->lost = NULL;
    if (outcome == TASK_FAILED)
        perform_failed(candidate, TELEMETRY_HANDLER_ERROR, "lost",
                       lua_tostring(task_state(task), -1));
    candidate_feed_type(candidate, ELECTION_EVENT_LOST_DONE);
}

void handlers_lost(struct candidate *candidate, enum election_reason reason)
{
    if (!candidate->has_lost) {
        candidate_feed_type(candidate, ELECTION_EVENT_LOST_DONE);
        return;
    }
    lua_State *L = perform_push(candidate, "lost");
    lua_pushstring(L, election_reason_name(reason));
    candidate->lost = perform_spawn(candidate, 1, &candidate->calls, lost_done);
    if (candidate->lost == NULL)
        candidate_feed_type(candidate, ELECTION_EVENT_LOST_DONE);
}

void handlers_lost_over(struct candidate *candidate)
{
    if (candidate->lost == NULL)
        return;
    perform_failed(candidate, TELEMETRY_HANDLER_ERROR, "lost",
                   "not done in the time allowed: dropped");
    task_drop(candidate->lost);
    candidate->lost = NULL;
}

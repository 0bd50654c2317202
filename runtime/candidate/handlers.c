#include "candidate/handlers.h"

#include "candidate/feed.h"
#include "candidate/perform.h"
#include "candidate/state.h"
#include "candidate/status.h"
#include "lua/error_text.h"

static void campaign_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    (void)nresults;
    if (outcome == TASK_FAILED)
        perform_failed(context, TELEMETRY_HANDLER_ERROR, "campaign",
                       lua_error_text(task_state(task)));
}

void handlers_campaign(struct candidate *candidate)
{
    if (!candidate->has_campaign)
        return;
    lua_State *L = perform_push(candidate, "campaign");
    lua_pushstring(L, candidate_phase_name(election_look(&candidate->election).phase));
    (void)perform_spawn(candidate, 1, candidate_scope(candidate), campaign_done);
}

static void leader_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    (void)nresults;
    if (outcome == TASK_FAILED)
        perform_failed(context, TELEMETRY_HANDLER_ERROR, "leader",
                       lua_error_text(task_state(task)));
}

void handlers_leader(struct candidate *candidate, const char *leader, uint64_t epoch)
{
    if (!candidate->has_leader)
        return;
    lua_State *L = perform_push(candidate, "leader");
    lua_pushstring(L, leader);
    lua_pushnumber(L, (lua_Number)epoch);
    (void)perform_spawn(candidate, 2, candidate_scope(candidate), leader_done);
}

static void won_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    (void)nresults;
    if (outcome != TASK_FAILED)
        return;
    perform_failed(candidate, TELEMETRY_HANDLER_ERROR, "won", lua_error_text(task_state(task)));
    candidate_feed_type(candidate, ELECTION_EVENT_WON_FAILED);
}

void handlers_won(struct candidate *candidate, uint64_t epoch)
{
    if (!candidate->has_won)
        return;
    lua_State *L = perform_push(candidate, "won");
    lua_pushnumber(L, (lua_Number)epoch);
    if (perform_spawn(candidate, 1, candidate->term->scope, won_done) == NULL)
        candidate_feed_type(candidate, ELECTION_EVENT_WON_FAILED);
}

struct task *handlers_lost(struct candidate *candidate, enum election_reason reason,
                           struct scope *scope, task_done *done)
{
    if (!candidate->has_lost)
        return NULL;
    lua_State *L = perform_push(candidate, "lost");
    lua_pushstring(L, election_reason_name(reason));
    return perform_spawn(candidate, 1, scope, done);
}

void handlers_lost_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    (void)nresults;
    if (outcome == TASK_FAILED)
        perform_failed(context, TELEMETRY_HANDLER_ERROR, "lost", lua_error_text(task_state(task)));
}

void handlers_lost_late(struct candidate *candidate)
{
    perform_failed(candidate, TELEMETRY_HANDLER_ERROR, "lost",
                   "not done in the time allowed: dropped");
}

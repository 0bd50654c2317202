#include "candidate/oracle_call.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candidate/candidate.h"
#include "candidate/env.h"
#include "candidate/feed.h"
#include "candidate/handlers.h"
#include "candidate/leader.h"
#include "candidate/outage.h"
#include "candidate/perform.h"
#include "candidate/refresher.h"
#include "candidate/starts.h"
#include "candidate/state.h"
#include "candidate/status.h"
#include "candidate/term.h"
#include "lua/error_text.h"
#include "lua/vm.h"

static const char *const call_names[] = {
    [CALL_CLAIM] = "claim",
    [CALL_REFRESH] = "refresh",
    [CALL_INFO] = "info",
    [CALL_ABDICATE] = "abdicate",
};

/* The functions as the user wrote them, for messages. */
static const char *const function_names[] = {
    [CALL_CLAIM] = "claim",
    [CALL_REFRESH] = "refresh",
    [CALL_INFO] = "handle_info",
    [CALL_ABDICATE] = "abdicate",
};

static int64_t seconds_at(lua_State *L, int index, int64_t otherwise)
{
    return lua_type(L, index) == LUA_TNUMBER ? clock_ns_from_seconds(lua_tonumber(L, index))
                                             : otherwise;
}

static uint64_t epoch_at(lua_State *L, int index)
{
    lua_Number epoch = lua_tonumber(L, index);
    return epoch >= 1 && epoch < 9007199254740992.0 ? (uint64_t)epoch : 0;
}

static int hold_at(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TNUMBER ? (int)lua_tonumber(L, index) : -1;
}

/* granted, refresh, ttl, epoch, three to hold, refresher, past, cool_down: ten values from index
 * `first`. */
static void read_grant(struct candidate *candidate, lua_State *L, int first,
                       struct election_event *event)
{
    event->type = ELECTION_EVENT_GRANTED;
    free(candidate->denied_because);
    candidate->denied_because = NULL;
    event->grant.refresh_ns = seconds_at(L, first + 1, TIME_NEVER);
    event->grant.ttl_ns = seconds_at(L, first + 2, 0);
    event->grant.epoch = epoch_at(L, first + 3);
    event->grant.past_ns = seconds_at(L, first + 8, 0);
    event->grant.cool_down_ns = seconds_at(L, first + 9, 0);
    const struct scope_hold hold = {
        .fds = {hold_at(L, first + 4), hold_at(L, first + 5), hold_at(L, first + 6)}};
    term_set_hold(candidate, &hold);
    candidate->refresher = luaL_testudata(L, first + 7, REFRESHER_TYPE);
    leader_remember(candidate, candidate_node(candidate), event->grant.epoch, -1);
}

/* denied, expires_in, node, epoch, amnesia, retry_in, error, hears, unsure: nine values from index
 * `first`. */
static void read_denial(struct candidate *candidate, lua_State *L, int first,
                        struct election_event *event)
{
    event->type = ELECTION_EVENT_DENIED;
    event->denial.expires_ns = seconds_at(L, first + 1, -1);
    event->denial.epoch = epoch_at(L, first + 3);
    event->denial.amnesia = lua_toboolean(L, first + 4);
    event->denial.retry_ns = seconds_at(L, first + 5, 0);
    event->denial.hears = candidate->denied_hears = lua_toboolean(L, first + 7);
    event->denial.nobody = lua_tostring(L, first + 2) == NULL;
    candidate->denied_unsure = lua_toboolean(L, first + 8);
    const char *reason = lua_tostring(L, first + 6);
    free(candidate->denied_because);
    candidate->denied_because = reason != NULL ? strdup(reason) : NULL;
    leader_remember(candidate, lua_tostring(L, first + 2), event->denial.epoch,
                    event->denial.expires_ns);
}

static bool may_win(enum candidate_call kind)
{
    return kind == CALL_CLAIM || kind == CALL_INFO;
}

/* The verdict that lua/crown/election/contract.lua made of what the oracle returned. */
static void read_verdict(struct candidate *candidate, lua_State *L, int nresults,
                         struct election_event *event)
{
    int first = lua_gettop(L) - nresults + 1;
    const char *verdict = nresults > 0 ? lua_tostring(L, first) : NULL;
    lua_settop(L, first + 9); /* what was not returned reads as nil */
    candidate->denied_unsure = false;
    if (verdict != NULL && strcmp(verdict, "granted") == 0) {
        read_grant(candidate, L, first, event);
    } else if (verdict != NULL && strcmp(verdict, "denied") == 0) {
        read_denial(candidate, L, first, event);
    } else if (verdict != NULL && strcmp(verdict, "evicted") == 0) {
        event->type = ELECTION_EVENT_EVICTED;
    } else if (verdict != NULL && strcmp(verdict, "nothing") == 0) {
        event->type = ELECTION_EVENT_NOTHING;
    } else {
        event->type = ELECTION_EVENT_UNKNOWN;
        outage_report(candidate, function_names[candidate->call_kind], lua_tostring(L, first + 1),
                      lua_tostring(L, first + 2));
        event->unknown.answered = candidate->outage->answers;
        event->unknown.retry_ns = seconds_at(L, first + 3, 0);
        return;
    }
    /* Whether a lease that a claim has won can be led by is said by the core. */
    bool won = event->type == ELECTION_EVENT_GRANTED && may_win(candidate->call_kind);
    if (event->type != ELECTION_EVENT_NOTHING && !won)
        outage_over(candidate);
}

void oracle_call_late(struct candidate *candidate)
{
    leader_forget_own(candidate);
    outage_report(candidate, function_names[candidate->call_kind],
                  "the store granted a lease that left no time to lead: raise ttl, or see why the "
                  "store is slow",
                  "store");
}

/* A refresh takes several turns of the loop, and a lease may run out meanwhile. */
static void begin_call(struct candidate *candidate, const struct election_action *action,
                       enum candidate_call kind)
{
    candidate->call_kind = kind;
    candidate->call_attempt = action->attempt;
    candidate->call_began_ns = loop_now(candidate->env->loop);
    candidate->call_until_ns = action->until_ns;
    if (kind == CALL_REFRESH)
        loop_urgent_begin(candidate->env->loop);
    if (may_win(kind))
        starts_asking(candidate->env->starts, true);
}

static void end_call(struct candidate *candidate)
{
    candidate->call = NULL;
    candidate->asked = NULL;
    candidate_scope_leave(candidate);
    if (candidate->call_kind == CALL_REFRESH)
        loop_urgent_end(candidate->env->loop);
    if (may_win(candidate->call_kind))
        starts_asking(candidate->env->starts, false);
}

static void note_latency(const struct candidate *candidate)
{
    latency_note(telemetry_latency(candidate->env->telemetry), function_names[candidate->call_kind],
                 loop_now(candidate->env->loop) - candidate->call_began_ns);
}

static void call_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    struct election_event event = {.type = ELECTION_EVENT_UNKNOWN,
                                   .attempt = candidate->call_attempt};
    lua_State *L = task_state(task);
    enum candidate_call kind = candidate->call_kind;
    end_call(candidate);
    note_latency(candidate);
    if (outcome == TASK_FAILED)
        outage_report(candidate, function_names[kind], lua_error_text(L), NULL);
    else if (outcome == TASK_DONE && kind != CALL_ABDICATE)
        read_verdict(candidate, L, nresults, &event);
    if (kind == CALL_ABDICATE)
        event.type = ELECTION_EVENT_RELEASED;
    candidate_feed(candidate, &event);
}

static enum candidate_call kind_of(const struct election_action *action)
{
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
        return CALL_CLAIM;
    case ELECTION_ACTION_CALL_REFRESH:
        return CALL_REFRESH;
    case ELECTION_ACTION_CALL_INFO:
        return CALL_INFO;
    default:
        return CALL_ABDICATE;
    }
}

static void call_in_task(struct candidate *candidate)
{
    enum candidate_call kind = candidate->call_kind;
    lua_State *L = perform_push(candidate, call_names[kind]);
    int more = 0;
    if (kind == CALL_INFO) {
        mailbox_take(&candidate->mailbox, L);
        more++;
    } else if (kind == CALL_ABDICATE) {
        lua_pushboolean(L, election_look(&candidate->election).ending);
        more++;
    }
    candidate->call = perform_spawn(candidate, more, candidate_scope(candidate), call_done);
    if (candidate->call != NULL)
        return;
    end_call(candidate);
    const struct election_event event = {.type = kind == CALL_ABDICATE ? ELECTION_EVENT_RELEASED
                                                                       : ELECTION_EVENT_UNKNOWN,
                                         .attempt = candidate->call_attempt};
    candidate_feed(candidate, &event);
}

static struct refresher_term term_of(const struct candidate *candidate)
{
    return (struct refresher_term){.epoch = election_look(&candidate->election).epoch,
                                   .asked_ns = candidate->call_began_ns,
                                   .stands = candidate->stands};
}

static struct refresher_found found_by(const struct refresher *refresher)
{
    return (struct refresher_found){.ttl_ns = refresher->ttl_ns, .delay_ns = refresher->delay_ns};
}

static void grant(struct candidate *candidate, const struct refresher_term *term,
                  const struct refresher_found *found)
{
    const struct election_event event = {.type = ELECTION_EVENT_GRANTED,
                                         .attempt = candidate->call_attempt,
                                         .grant = {.refresh_ns = found->delay_ns,
                                                   .ttl_ns = found->ttl_ns,
                                                   .past_ns = found->past_ns,
                                                   .epoch = term->epoch}};
    end_call(candidate);
    note_latency(candidate);
    outage_over(candidate);
    candidate_feed(candidate, &event);
}

/* The refresher that was asked has an answer. */
static void asked_done(struct op *op)
{
    struct candidate *candidate = op->waiter;
    struct refresher *refresher = candidate->refresher;
    const struct refresher_term term = term_of(candidate);
    struct refresher_found found = found_by(refresher);
    candidate->asked = NULL;
    enum refresher_answer answer = refresher->look(refresher, op, &term, &found);
    if (answer == REFRESHER_OTHER) {
        call_in_task(candidate);
        return;
    }
    if (answer == REFRESHER_SAME) {
        grant(candidate, &term, &found);
        return;
    }
    const struct election_event event = {.type = ELECTION_EVENT_UNKNOWN,
                                         .attempt = candidate->call_attempt};
    end_call(candidate);
    note_latency(candidate);
    outage_report(candidate, function_names[CALL_REFRESH], found.err.message, found.code);
    candidate_feed(candidate, &event);
}

/* The lease was given back, or will run out. */
static void released(struct op *op)
{
    struct candidate *candidate = op->waiter;
    const struct election_event event = {.type = ELECTION_EVENT_RELEASED,
                                         .attempt = candidate->call_attempt};
    candidate->refresher->forget(op);
    end_call(candidate);
    note_latency(candidate);
    candidate_feed(candidate, &event);
}

/* @return whether the refresher has granted it at once. */
static bool granted_at_once(struct candidate *candidate, const struct refresher_term *term)
{
    struct refresher *refresher = candidate->refresher;
    struct refresher_found found = found_by(refresher);
    if (refresher->grants == NULL || !refresher->grants(refresher, term, &found))
        return false;
    grant(candidate, term, &found);
    return true;
}

/* @return whether the refresher does it. */
static bool ask_refresher(struct candidate *candidate)
{
    struct refresher *refresher = candidate->refresher;
    const struct refresher_term term = term_of(candidate);
    bool refreshes = candidate->call_kind == CALL_REFRESH;
    bool releases = candidate->call_kind == CALL_ABDICATE;
    if (refresher == NULL || (!refreshes && (!releases || refresher->release == NULL)))
        return false;
    if (refreshes && granted_at_once(candidate, &term))
        return true;
    lua_State *L = perform_push_state(candidate);
    candidate->asked =
        refreshes ? refresher->ask(refresher, &term, L) : refresher->release(refresher, L);
    if (candidate->asked != NULL && !refreshes) {
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "leading");
    }
    lua_pop(L, 1);
    if (candidate->asked == NULL)
        return false;
    candidate->asked->wake = refreshes ? asked_done : released;
    candidate->asked->waiter = candidate;
    return true;
}

void oracle_call(struct candidate *candidate, const struct election_action *action)
{
    enum candidate_call kind = kind_of(action);
    if (kind == CALL_CLAIM || kind == CALL_REFRESH)
        handlers_campaign(candidate);
    begin_call(candidate, action, kind);
    if (!ask_refresher(candidate))
        call_in_task(candidate);
}

static bool is_calling(const struct candidate *candidate)
{
    return candidate->call != NULL || candidate->asked != NULL;
}

/* What the object knows of the silence: its connection may be broken. @return whether it was asked;
 * then its answer, or an error, is on top of the stack. */
static bool ask_why(struct candidate *candidate, lua_State *L)
{
    candidate_push(candidate, L);
    lua_getfield(L, -1, "silence");
    if (!lua_isfunction(L, -1)) {
        lua_pop(L, 2);
        return false;
    }
    lua_insert(L, -2);
    lua_pushstring(L, candidate->store); /* NULL is nil */
    return lua_pcall(L, 2, 1, 0) == 0;
}

/* What was answered before tells more than silence: it stays the cause. */
static void report_late(struct candidate *candidate)
{
    if (candidate->outage != NULL)
        return;
    lua_State *L = lua_vm_state(candidate->env->lua);
    int top = lua_gettop(L);
    const char *why = ask_why(candidate, L) ? lua_tostring(L, -1) : NULL;
    char message[ERROR_TEXT];
    if (why != NULL)
        (void)snprintf(message, sizeof(message), "%s", why);
    else
        (void)snprintf(message, sizeof(message), "%s%sno answer in the time allowed",
                       candidate->store != NULL ? candidate->store : "",
                       candidate->store != NULL ? ": " : "");
    lua_settop(L, top);
    outage_report(candidate, function_names[candidate->call_kind], message, NULL);
}

void oracle_call_cancel(struct candidate *candidate)
{
    if (!is_calling(candidate))
        return;
    if (loop_now(candidate->env->loop) >=
        candidate->call_until_ns) /* else it is the user who stops us */
        report_late(candidate);
    oracle_call_drop(candidate);
}

void oracle_call_drop(struct candidate *candidate)
{
    if (!is_calling(candidate))
        return;
    if (candidate->asked != NULL)
        op_cancel(candidate->asked);
    else
        task_drop(candidate->call);
    end_call(candidate);
}

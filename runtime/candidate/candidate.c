#include "candidate/candidate.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "candidate/candidates.h"
#include "candidate/deadmen.h"
#include "candidate/internal.h"
#include "candidate/journal.h"
#include "child/exec.h"
#include "host/announce.h"
#include "host/host.h"

static void timer_fired(struct loop_deadline *timer)
{
    candidate_feed_type(container_of(timer, struct candidate, timer), ELECTION_EVENT_TIMER);
}

/* The core tells what happened to leadership; who leads now is known here. */
static void emit_notice(struct candidate *candidate, const struct election_action *action)
{
    static const enum telemetry_event events[ELECTION_NOTICE_COUNT] = {
        [ELECTION_NOTICE_CLAIMED] = TELEMETRY_LEADERSHIP_CLAIMED,
        [ELECTION_NOTICE_REJECTED] = TELEMETRY_LEADERSHIP_REJECTED,
        [ELECTION_NOTICE_REFRESHED] = TELEMETRY_LEADERSHIP_REFRESHED,
        [ELECTION_NOTICE_UNCERTAIN] = TELEMETRY_LEADERSHIP_UNCERTAIN,
        [ELECTION_NOTICE_LOST] = TELEMETRY_LEADERSHIP_LOST,
        [ELECTION_NOTICE_CONFLICT] = TELEMETRY_LEADERSHIP_CONFLICT,
        [ELECTION_NOTICE_ABDICATED] = TELEMETRY_LEADERSHIP_ABDICATED,
        [ELECTION_NOTICE_EVICTED] = TELEMETRY_LEADERSHIP_EVICTED,
        [ELECTION_NOTICE_AMNESIA] = TELEMETRY_ORACLE_AMNESIA,
        [ELECTION_NOTICE_LEADER_DOWN] = TELEMETRY_MONITOR_LEADER_DOWN,
        [ELECTION_NOTICE_MONITOR_TIMEOUT] = TELEMETRY_MONITOR_TIMEOUT,
    };
    struct log_field fields[1];
    unsigned count = 0;
    if (action->reason != ELECTION_REASON_NONE)
        fields[count++] = log_string("reason", election_reason_name(action->reason));
    if (action->notice == ELECTION_NOTICE_CLAIMED)
        journal_set(host_journal(candidate->host), candidate->name, action->epoch);
    if (action->notice == ELECTION_NOTICE_LOST)
        journal_set(host_journal(candidate->host), candidate->name, 0);
    bool asked =
        action->reason == ELECTION_REASON_SHUTDOWN || action->reason == ELECTION_REASON_ABDICATED;
    if (action->notice == ELECTION_NOTICE_CLAIMED || action->notice == ELECTION_NOTICE_LOST)
        announce_status(candidate->host);
    struct telemetry *telemetry = host_telemetry(candidate->host);
    if (asked)
        telemetry_emit_at(telemetry, LOG_INFO, candidate, events[action->notice], fields, count);
    else
        telemetry_emit(telemetry, candidate, events[action->notice], fields, count);
}

static void set_deadline(struct candidate *candidate, const struct election_action *action)
{
    /* The keeper first: it is what stops the child when this process hangs a moment later. */
    child_set_deadline(candidate, action);
    exec_set_deadlines(&candidate->execs, action->stop_at_ns, action->kill_at_ns,
                       action->deadline_ns);
    candidate->deadman_ns = candidate->has_won ? action->deadline_ns : TIME_NEVER;
    deadmen_update(host_deadmen(candidate->host), candidate);
}

static void clear_deadline(struct candidate *candidate)
{
    candidate->deadman_ns = TIME_NEVER;
    deadmen_update(host_deadmen(candidate->host), candidate);
}

static void carry_out(struct candidate *candidate, const struct election_action *action)
{
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
        calls_oracle(candidate, CALL_CLAIM, action);
        break;
    case ELECTION_ACTION_CALL_REFRESH:
        calls_oracle(candidate, CALL_REFRESH, action);
        break;
    case ELECTION_ACTION_CALL_INFO:
        calls_oracle(candidate, CALL_INFO, action);
        break;
    case ELECTION_ACTION_CALL_ABDICATE:
        calls_lost_over(candidate);
        calls_oracle(candidate, CALL_ABDICATE, action);
        break;
    case ELECTION_ACTION_CANCEL_CALL:
        calls_cancel(candidate);
        break;
    case ELECTION_ACTION_ARM_TIMER:
        loop_at(host_loop(candidate->host), &candidate->timer, action->at_ns);
        break;
    case ELECTION_ACTION_SET_DEADLINE:
        set_deadline(candidate, action);
        break;
    case ELECTION_ACTION_CLEAR_DEADLINE:
        calls_lost_over(candidate);
        clear_deadline(candidate);
        break;
    case ELECTION_ACTION_START_CHILD:
        child_start(candidate, action);
        break;
    case ELECTION_ACTION_STOP_CHILD:
        child_stop(candidate, action->kill_at_ns);
        break;
    case ELECTION_ACTION_CANCEL_TASKS:
        candidate->won = NULL;
        task_scope_close(&candidate->term);
        break;
    case ELECTION_ACTION_RUN_WON:
        calls_won(candidate, action->epoch);
        break;
    case ELECTION_ACTION_RUN_LOST:
        calls_lost(candidate, action->reason);
        break;
    case ELECTION_ACTION_EMIT:
        emit_notice(candidate, action);
        break;
    case ELECTION_ACTION_FINISH:
        calls_lost_over(candidate);
        candidate->finished = true;
        break;
    case ELECTION_ACTION_COUNT:
        assert(!"no such action");
    }
}

/* Frees what a finished election holds of the outside; the struct lives on while Lua knows it. */
static void candidate_finish(struct candidate *candidate)
{
    loop_at_cancel(host_loop(candidate->host), &candidate->timer);
    clear_deadline(candidate);
    calls_free(candidate);
    telemetry_emit(host_telemetry(candidate->host), candidate, TELEMETRY_PROCESS_TERMINATING, NULL,
                   0);
    registry_remove(host_registry(candidate->host), candidate);
    lua_State *L = lua_vm_state(host_lua(candidate->host));
    luaL_unref(L, LUA_REGISTRYINDEX, candidate->object);
    candidate->object = LUA_NOREF;
    if (candidate->started)
        host_release(candidate->host);
}

void candidate_feed(struct candidate *candidate, const struct election_event *event)
{
    if (candidate->finished)
        return;
    if (candidate->queue != NULL) {
        /* An action failed at once, or ended something that was running: its event waits its turn.
         */
        assert(candidate->queue->count < CANDIDATE_MAX_EVENTS);
        candidate->queue->events[candidate->queue->count++] = *event;
        return;
    }
    struct candidate_queue queue = {.count = 0};
    struct election_event next = *event;
    /* Taken back before we return. */
    /* cppcheck-suppress autoVariables */
    candidate->queue = &queue;
    for (unsigned done = 0;; done++) {
        struct election_actions actions;
        next.at_ns = loop_now(host_loop(candidate->host));
        election_step(&candidate->election, &next, &actions);
        for (unsigned i = 0; i < actions.count; i++)
            carry_out(candidate, &actions.item[i]);
        if (done == queue.count)
            break;
        next = queue.events[done];
    }
    candidate->queue = NULL;
    if (candidate->finished)
        candidate_finish(candidate);
}

void candidate_feed_type(struct candidate *candidate, enum election_event_type type)
{
    const struct election_event event = {.type = type};
    candidate_feed(candidate, &event);
}

struct candidate *candidate_new(struct host *host, lua_State *L,
                                const struct candidate_config *config, struct crown_error *err)
{
    struct candidate *candidate = calloc(1, sizeof(*candidate));
    if (candidate != NULL) {
        candidate->object = LUA_NOREF;
        candidate->child_options[ELECTION_ROLE_LEADER] = config->child;
        candidate->child_options[ELECTION_ROLE_FOLLOWER] = config->follower_child;
        candidate->name = strdup(config->name);
        candidate->oracle = strdup(config->oracle);
    } else {
        child_options_free(config->child);
        child_options_free(config->follower_child);
    }
    if (candidate == NULL || candidate->name == NULL || candidate->oracle == NULL) {
        error_set(err, ERROR_MEMORY, "elect '%s': out of memory", config->name);
        goto fail;
    }
    if (election_init(&candidate->election, &config->election, err) < 0)
        goto fail;
    candidate->host = host;
    candidate->has_won = config->has_won;
    candidate->has_lost = config->has_lost;
    candidate->has_campaign = config->has_campaign;
    candidate->hold_fd = -1;
    candidate->leader_expires_ns = TIME_NEVER;
    candidate->deadman_ns = TIME_NEVER;
    candidate->timer.fire = timer_fired;
    list_init(&candidate->execs);
    task_scope_init(&candidate->calls);
    task_scope_init(&candidate->term);
    if (registry_add(host_registry(host), candidate, err) < 0)
        goto fail;
    candidate->object = luaL_ref(L, LUA_REGISTRYINDEX);
    return candidate;
fail:
    if (candidate != NULL)
        candidate_free(candidate);
    lua_pop(L, 1);
    return NULL;
}

void candidate_close(struct candidate *candidate)
{
    if (candidate->finished)
        return;
    candidate->finished = true;
    candidate_finish(candidate);
    child_free(candidate);
}

void candidate_free(struct candidate *candidate)
{
    if (candidate == NULL)
        return;
    if (candidate->object != LUA_NOREF)
        candidate_close(candidate);
    child_options_free(candidate->child_options[ELECTION_ROLE_LEADER]);
    child_options_free(candidate->child_options[ELECTION_ROLE_FOLLOWER]);
    free(candidate->messages);
    free(candidate->leader);
    free(candidate->failure);
    free(candidate->oracle);
    free(candidate->name);
    free(candidate);
}

/* A runtime before this one led the election and died: its handlers learn of it before the first
 * claim. */
static void report_dead_runtime(struct candidate *candidate)
{
    uint64_t epoch = journal_get(host_journal(candidate->host), candidate->name);
    if (epoch == 0)
        return;
    journal_set(host_journal(candidate->host), candidate->name, 0);
    const struct log_field fields[] = {
        log_string("reason", election_reason_name(ELECTION_REASON_RUNTIME_DIED)),
        log_integer("lost_epoch", (int64_t)epoch),
    };
    telemetry_emit(host_telemetry(candidate->host), candidate, TELEMETRY_LEADERSHIP_LOST, fields,
                   2);
    calls_lost(candidate, ELECTION_REASON_RUNTIME_DIED);
}

void candidate_start(struct candidate *candidate)
{
    if (candidate->started)
        return;
    candidate->started = true;
    host_hold(candidate->host);
    telemetry_emit(host_telemetry(candidate->host), candidate, TELEMETRY_PROCESS_INITIALIZED, NULL,
                   0);
    report_dead_runtime(candidate);
    candidate_feed_type(candidate, ELECTION_EVENT_START);
}

void candidate_abdicate(struct candidate *candidate)
{
    candidate_feed_type(candidate, ELECTION_EVENT_ABDICATE);
}

void candidate_stop(struct candidate *candidate)
{
    candidate->asked_to_stop = true;
    if (standing_stop(candidate))
        return;
    candidate_feed_type(candidate, ELECTION_EVENT_STOP);
}

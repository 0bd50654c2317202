#include "candidate/candidate.h"

#include <assert.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/shared.h"
#include "candidate/bars.h"
#include "candidate/deadmen.h"
#include "candidate/feed.h"
#include "candidate/handlers.h"
#include "candidate/journal.h"
#include "candidate/leader.h"
#include "candidate/oracle_call.h"
#include "candidate/outage.h"
#include "candidate/owed.h"
#include "candidate/starts.h"
#include "candidate/state.h"
#include "candidate/term.h"
#include "candidate/workload.h"
#include "lua/vm.h"

static void timer_fired(struct loop_deadline *timer)
{
    starts_due(container_of(timer, struct candidate, timer));
}

/* What is waited for, how long, and why. */
static unsigned amnesia_fields(const struct candidate *candidate, struct log_field *fields)
{
    unsigned count = 0;
    if (candidate->leader_expires_ns != TIME_NEVER)
        fields[count++] =
            log_number("wait", round(clock_seconds_from_ns(candidate->leader_expires_ns -
                                                           loop_now(candidate->env->loop)) *
                                     10) /
                                   10);
    const char *why = candidate->denied_because;
    fields[count++] =
        log_string("error", why != NULL ? why
                                        : "the store may have lost the record of who "
                                          "leads: nobody claims until a lease that it "
                                          "may have granted is over");
    return count;
}

static const char *failure_of(const struct candidate *candidate)
{
    return candidate->outage != NULL ? candidate->outage->failure : NULL;
}

/* Why leadership was lost, as the store said, or why it said nothing; or NULL. */
static const char *cause_of(const struct candidate *candidate, enum election_reason reason)
{
    if (reason == ELECTION_REASON_DENIED)
        return candidate->denied_because;
    if (reason == ELECTION_REASON_UNHEALTHY)
        return bars_why(candidate, ELECTION_BAR_UNHEALTHY);
    if (reason == ELECTION_REASON_WINDOW)
        return bars_why(candidate, ELECTION_BAR_WINDOW);
    if (reason == ELECTION_REASON_PAUSED)
        return bars_why(candidate, ELECTION_BAR_PAUSED);
    if (reason == ELECTION_REASON_HANDOVER)
        return bars_why(candidate, ELECTION_BAR_HANDOVER);
    return reason == ELECTION_REASON_EXPIRED ? failure_of(candidate) : NULL;
}

static void note_doubt(struct candidate *candidate, enum election_notice notice)
{
    if (notice == ELECTION_NOTICE_AMNESIA)
        candidate->doubted = true;
    else if (notice == ELECTION_NOTICE_REJECTED || notice == ELECTION_NOTICE_CLAIMED)
        candidate->doubted = false; /* a claim was answered */
}

/* The core tells what happened to leadership; who leads now is known here. */
static void emit_notice(struct candidate *candidate, const struct election_action *action)
{
    static const enum telemetry_event events[ELECTION_NOTICE_COUNT] = {
        [ELECTION_NOTICE_CLAIMED] = TELEMETRY_LEADERSHIP_CLAIMED,
        [ELECTION_NOTICE_REJECTED] = TELEMETRY_LEADERSHIP_REJECTED,
        [ELECTION_NOTICE_REFRESHED] = TELEMETRY_LEADERSHIP_REFRESHED,
        [ELECTION_NOTICE_UNCERTAIN] = TELEMETRY_LEADERSHIP_UNCERTAIN,
        [ELECTION_NOTICE_ACTING] = TELEMETRY_LEADERSHIP_ACTING,
        [ELECTION_NOTICE_LOST] = TELEMETRY_LEADERSHIP_LOST,
        [ELECTION_NOTICE_CONFLICT] = TELEMETRY_LEADERSHIP_CONFLICT,
        [ELECTION_NOTICE_ABDICATED] = TELEMETRY_LEADERSHIP_ABDICATED,
        [ELECTION_NOTICE_EVICTED] = TELEMETRY_LEADERSHIP_EVICTED,
        [ELECTION_NOTICE_BARRED] = TELEMETRY_LEADERSHIP_BARRED,
        [ELECTION_NOTICE_ALLOWED] = TELEMETRY_LEADERSHIP_ALLOWED,
        [ELECTION_NOTICE_AMNESIA] = TELEMETRY_ORACLE_AMNESIA,
        [ELECTION_NOTICE_LEADER_DOWN] = TELEMETRY_MONITOR_LEADER_DOWN,
        [ELECTION_NOTICE_MONITOR_TIMEOUT] = TELEMETRY_MONITOR_TIMEOUT,
    };
    struct log_field fields[3];
    unsigned count = 0;
    if (action->notice == ELECTION_NOTICE_LATE) {
        oracle_call_late(candidate);
        return;
    }
    if (action->notice == ELECTION_NOTICE_CLAIMED || action->notice == ELECTION_NOTICE_AMNESIA)
        outage_over(candidate); /* the store has answered, and in time */
    if (action->notice == ELECTION_NOTICE_AMNESIA && candidate->doubted && candidate->denied_hears)
        return; /* the doubt that was told of goes on */
    if (action->reason != ELECTION_REASON_NONE)
        fields[count++] = log_string("reason", election_reason_name(action->reason));
    const char *cause = NULL;
    if (action->notice == ELECTION_NOTICE_LOST)
        cause = cause_of(candidate, action->reason);
    else if (action->notice == ELECTION_NOTICE_REJECTED)
        cause = candidate->denied_because;
    if (action->notice == ELECTION_NOTICE_BARRED || action->notice == ELECTION_NOTICE_ALLOWED) {
        fields[count++] = log_string("reason", election_bar_name(action->bar));
        cause = bars_why(candidate, action->bar);
    }
    if (cause != NULL)
        fields[count++] = log_string("error", cause);
    if (action->notice == ELECTION_NOTICE_AMNESIA)
        count = amnesia_fields(candidate, fields);
    if (action->notice == ELECTION_NOTICE_REJECTED && candidate->denied_unsure)
        fields[count++] = log_boolean("unsure", true);
    bool asked =
        action->reason == ELECTION_REASON_SHUTDOWN || action->reason == ELECTION_REASON_ABDICATED;
    struct telemetry *telemetry = candidate->env->telemetry;
    candidate->env->telling.lost = action->notice == ELECTION_NOTICE_LOST ? action->epoch : 0;
    if (asked)
        telemetry_emit_at(telemetry, LOG_INFO, &candidate->source, events[action->notice], fields,
                          count);
    else
        telemetry_emit(telemetry, &candidate->source, events[action->notice], fields, count);
    candidate->env->telling.lost = 0;
    if (action->notice == ELECTION_NOTICE_LOST)
        leader_forget_own(candidate);
    note_doubt(candidate, action->notice);
}

static void carry_out(struct candidate *candidate, const struct election_action *action)
{
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
        workload_expect(candidate);
        oracle_call(candidate, action);
        break;
    case ELECTION_ACTION_CALL_ABDICATE:
    case ELECTION_ACTION_CALL_REFRESH:
    case ELECTION_ACTION_CALL_INFO:
        oracle_call(candidate, action);
        break;
    case ELECTION_ACTION_CANCEL_CALL:
        oracle_call_cancel(candidate);
        break;
    case ELECTION_ACTION_ARM_TIMER:
        loop_at(candidate->env->loop, &candidate->timer, action->at_ns);
        break;
    case ELECTION_ACTION_SET_DEADLINE:
        term_set_instants(candidate, action);
        break;
    case ELECTION_ACTION_CLEAR_DEADLINE:
        term_forget(candidate);
        break;
    case ELECTION_ACTION_START_CHILD:
        workload_start(candidate, action);
        break;
    case ELECTION_ACTION_STOP_CHILD:
        workload_stop(candidate, action->kill_at_ns);
        break;
    case ELECTION_ACTION_CLOSE_TERM:
        term_close(candidate);
        break;
    case ELECTION_ACTION_RUN_WON:
        /* Until `lost` begins: a runtime that dies before leaves word to its successor. */
        journal_set(candidate->env->journal, candidate_key(candidate),
                    candidate->has_won ? action->epoch | JOURNAL_UNTOLD : action->epoch);
        term_begin(candidate, action->epoch);
        break;
    case ELECTION_ACTION_RUN_LOST:
        journal_set(candidate->env->journal, candidate_key(candidate), 0);
        term_run_lost(candidate, action);
        break;
    case ELECTION_ACTION_CLOSE_LOST:
        term_close_lost(candidate);
        break;
    case ELECTION_ACTION_EMIT:
        emit_notice(candidate, action);
        break;
    case ELECTION_ACTION_FINISH:
        candidate->finished = true;
        break;
    case ELECTION_ACTION_COUNT:
        assert(!"no such action");
    }
}

/* Frees what an ended election holds of the outside; the struct lives on while Lua knows it. */
static void end(struct candidate *candidate)
{
    candidate->ended = true;
    starts_forget(candidate);
    loop_at_cancel(candidate->env->loop, &candidate->timer);
    term_forget(candidate);
    oracle_call_drop(candidate);
    scope_free(candidate->scope);
    candidate->scope = NULL;
    lua_State *L = lua_vm_state(candidate->env->lua);
    mailbox_clear(&candidate->mailbox, L);
    telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_PROCESS_TERMINATING,
                   NULL, 0);
    candidates_remove(candidate->env->candidates, candidate);
    luaL_unref(L, LUA_REGISTRYINDEX, candidate->object);
    candidate->object = LUA_NOREF;
    if (candidate->started)
        candidate->env->hold(candidate->env, false);
}

static void all_gone(void *context)
{
    end(context);
}

/* The core has nothing more to say; what still runs, such as a command that lives on between terms,
 * has to end first. */
static void finish(struct candidate *candidate)
{
    if (candidate->scope != NULL)
        scope_close(candidate->scope);
    else
        end(candidate);
}

static void stepped(struct candidate *candidate)
{
    enum election_phase phase = election_look(&candidate->election).phase;
    leader_tell(candidate);
    if (phase == candidate->shown_phase)
        return;
    candidates_show(candidate->env->candidates, candidate, phase);
    candidate->env->changed(candidate->env);
}

const struct candidate_hands candidate_hands = {
    .carry_out = carry_out, .stepped = stepped, .finish = finish, .scope = {.empty = all_gone}};

/* A leader whose epoch is not known has none: the last one of ours is another's. */
static uint64_t shown_epoch(const struct candidate *candidate,
                            const struct candidate_status *status)
{
    bool follows = status->view.phase == ELECTION_FOLLOWING && status->leader != NULL;
    bool is_leaders = follows || candidate->env->telling.leader || status->leader_epoch != 0;
    return is_leaders ? status->leader_epoch : status->view.epoch;
}

static void describe(const struct telemetry_source *source, struct telemetry_subject *subject)
{
    const struct candidate *candidate = container_of(source, struct candidate, source);
    struct candidate_status status;
    const bool lost =
        candidate->env->telling.lost != 0; /* whoever leads now is told of on its own */
    candidate_status(candidate, &status);
    *subject = (struct telemetry_subject){
        .name = candidate->name,
        .node = candidate_own_node(candidate),
        .phase = candidate_phase_name(status.view.phase),
        .oracle = candidate->oracle,
        .store = candidate->store,
        .leader = lost ? candidate_node(candidate) : status.leader,
        .epoch = lost ? candidate->env->telling.lost : shown_epoch(candidate, &status),
    };
}

/* Names have no newline. @return whether there was memory for what a node of its own needs. */
static bool take_node(struct candidate *candidate, const struct candidate_config *config)
{
    if (config->node == NULL)
        return true;
    if (asprintf(&candidate->key, "%s\n%s", config->name, config->node) < 0)
        candidate->key = NULL;
    return candidate->key != NULL;
}

static void free_commands(struct commands *commands)
{
    if (commands == NULL)
        return;
    child_options_free(commands->options[ELECTION_ROLE_LEADER]);
    child_options_free(commands->options[ELECTION_ROLE_FOLLOWER]);
    tail_free(&commands->tail);
    free(commands);
}

/* The options change owner, also where there is no memory. */
static bool take_commands(struct candidate *candidate, const struct candidate_config *config)
{
    if (candidate != NULL && config->child == NULL && config->follower_child == NULL)
        return true;
    struct commands *commands = candidate != NULL ? calloc(1, sizeof(*commands)) : NULL;
    if (commands == NULL) {
        child_options_free(config->child);
        child_options_free(config->follower_child);
        return false;
    }
    commands->options[ELECTION_ROLE_LEADER] = config->child;
    commands->options[ELECTION_ROLE_FOLLOWER] = config->follower_child;
    candidate->commands = commands;
    return true;
}

/* Thousands of elections differ in what the core reads once, and in nothing else. */
static const struct election_config *share_config(const struct election_config *config)
{
    struct election_config same = *config;
    same.claim_delay_ns = 0;
    same.seed = 0;
    return shared_hold(&same, sizeof(same));
}

struct candidate *candidate_new(struct candidate_env *env, lua_State *L,
                                const struct candidate_config *config, struct crown_error *err)
{
    size_t name_size = strlen(config->name) + 1;
    struct candidate *candidate = calloc(1, sizeof(*candidate) + name_size);
    if (candidate != NULL) {
        candidate->object = LUA_NOREF;
        candidate->has_won = config->has_won;
        candidate->has_lost = config->has_lost;
        candidate->name = memcpy(candidate + 1, config->name, name_size);
        candidate->oracle = shared_text(config->oracle);
        candidate->store = shared_text(config->store);
    }
    if (!take_commands(candidate, config) || candidate->oracle == NULL ||
        !take_node(candidate, config) || term_init(candidate) < 0) {
        error_set(err, ERROR_MEMORY, "elect '%s': out of memory", config->name);
        goto fail;
    }
    uint32_t *restarted = candidate->commands != NULL ? candidate->commands->restarted : NULL;
    if (election_init(&candidate->election, &config->election, restarted, err) < 0)
        goto fail;
    election_share(&candidate->election, share_config(&config->election));
    if (candidate->election.config == NULL) {
        error_set(err, ERROR_MEMORY, "elect '%s': out of memory", config->name);
        goto fail;
    }
    candidate->env = env;
    candidate->has_campaign = config->has_campaign;
    candidate->has_leader = config->has_leader;
    candidate->answered_ns = TIME_NEVER;
    candidate->leader_expires_ns = TIME_NEVER;
    candidate->timer.fire = timer_fired;
    candidate->source.describe = describe;
    if (candidates_add(env->candidates, candidate, err) < 0)
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
    if (candidate->ended)
        return;
    candidate->finished = true;
    workload_let_go(candidate);
    if (!candidate->ended) /* where it was finishing, its last command ends it */
        end(candidate);
}

void candidate_free(struct candidate *candidate)
{
    if (candidate == NULL)
        return;
    if (candidate->object != LUA_NOREF)
        candidate_close(candidate);
    term_free(candidate);
    free_commands(candidate->commands);
    shared_release(candidate->leader);
    shared_release(candidate->told.leader);
    outage_forget(candidate);
    bars_free(candidate);
    shared_release(candidate->oracle);
    shared_release(candidate->store);
    shared_release(candidate->election.config);
    free(candidate->denied_because);
    free(candidate->key);
    free(candidate);
}

void candidate_stop(struct candidate *candidate)
{
    const bool begins = (candidate->waits & CANDIDATE_WAITS_TO_START) != 0;
    starts_forget(candidate);
    if (begins)
        owed_stop(candidate);
    candidate_feed_type(candidate, ELECTION_EVENT_STOP);
}

void candidate_start(struct candidate *candidate)
{
    if (candidate->started || candidate->finished)
        return;
    candidate->started = true;
    candidate->env->hold(candidate->env, true);
    telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_PROCESS_INITIALIZED,
                   NULL, 0);
    if (!candidate->env->stopping) {
        starts_add(candidate);
        return;
    }
    owed_stop(candidate);
    candidate_stop(candidate);
}

void candidate_won(struct candidate *candidate)
{
    term_told(candidate);
    journal_set(candidate->env->journal, candidate_key(candidate),
                election_look(&candidate->election).epoch);
}

void candidate_abdicate(struct candidate *candidate)
{
    candidate_feed_type(candidate, ELECTION_EVENT_ABDICATE);
}

void candidate_clock_set(struct candidate *candidate)
{
    candidate_feed_type(candidate, ELECTION_EVENT_CLOCK_SET);
}

bool candidate_send(struct candidate *candidate, lua_State *L)
{
    if (candidate->finished) {
        lua_pop(L, 1);
        return false;
    }
    if (bars_heard_enough(candidate)) {
        lua_pop(L, 1);
        return true;
    }
    if (!mailbox_put(&candidate->mailbox, L))
        return false;
    starts_tell(candidate);
    return true;
}

void candidate_stand(struct candidate *candidate, bool stands)
{
    candidate->stands = stands;
}

const struct tail *candidate_output(const struct candidate *candidate)
{
    return candidate->commands != NULL ? &candidate->commands->tail : NULL;
}

bool candidate_signal_child(struct candidate *candidate, int signal)
{
    return workload_signal(candidate, signal);
}

void candidate_push(const struct candidate *candidate, lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, candidate->object);
}

const struct telemetry_source *candidate_source(const struct candidate *candidate)
{
    return &candidate->source;
}

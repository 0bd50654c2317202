/* Oracle calls and handlers: each is a task that runs `object:perform(kind, …)`; its verdict
 * becomes an event. */
#include "candidate/internal.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "candidate/candidates.h"
#include "host/host.h"

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

/* Leaves perform, object and kind on the stack, ready for `more` further arguments and task_spawn.
 */
static lua_State *push_perform(struct candidate *candidate, const char *kind)
{
    lua_State *L = lua_vm_state(host_lua(candidate->host));
    lua_rawgeti(L, LUA_REGISTRYINDEX, candidate->object);
    lua_getfield(L, -1, "perform");
    lua_insert(L, -2);
    lua_pushstring(L, kind);
    return L;
}

static void report_error(struct candidate *candidate, enum telemetry_event event,
                         const char *function, const char *message)
{
    const struct log_field fields[] = {
        log_string("function", function),
        log_string("error", message != NULL ? message : "(no message)"),
    };
    telemetry_emit(host_telemetry(candidate->host), candidate, event, fields, 2);
}

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

static void remember_leader(struct candidate *candidate, const char *node, uint64_t epoch,
                            int64_t expires_ns)
{
    if (node == NULL || candidate->leader == NULL || strcmp(node, candidate->leader) != 0) {
        free(candidate->leader);
        candidate->leader = node != NULL ? strdup(node) : NULL;
    }
    candidate->leader_epoch = epoch;
    candidate->leader_expires_ns =
        expires_ns >= 0 ? clock_add_ns(loop_now(host_loop(candidate->host)), expires_ns)
                        : TIME_NEVER;
}

/* granted, refresh, ttl, epoch, hold: five values from index `first`. */
static void read_grant(struct candidate *candidate, lua_State *L, int first,
                       struct election_event *event)
{
    event->type = ELECTION_EVENT_GRANTED;
    event->grant.refresh_ns = seconds_at(L, first + 1, TIME_NEVER);
    event->grant.ttl_ns = seconds_at(L, first + 2, 0);
    event->grant.epoch = epoch_at(L, first + 3);
    candidate->hold_fd =
        lua_type(L, first + 4) == LUA_TNUMBER ? (int)lua_tonumber(L, first + 4) : -1;
    remember_leader(candidate, host_node(candidate->host), event->grant.epoch, -1);
}

/* denied, expires_in, node, epoch, amnesia, retry_in: six values from index `first`. */
static void read_denial(struct candidate *candidate, lua_State *L, int first,
                        struct election_event *event)
{
    event->type = ELECTION_EVENT_DENIED;
    event->denial.expires_ns = seconds_at(L, first + 1, -1);
    event->denial.epoch = epoch_at(L, first + 3);
    event->denial.amnesia = lua_toboolean(L, first + 4);
    event->denial.retry_ns = seconds_at(L, first + 5, 0);
    remember_leader(candidate, lua_tostring(L, first + 2), event->denial.epoch,
                    event->denial.expires_ns);
}

/* The store has answered: the next failure is a new one. */
static void forget_failure(struct candidate *candidate)
{
    free(candidate->failure);
    candidate->failure = NULL;
}

/* An outage is told when it begins and when its reason changes, not at every try. */
static void report_failure(struct candidate *candidate, const char *message)
{
    if (candidate->failure != NULL && message != NULL && strcmp(candidate->failure, message) == 0)
        return;
    forget_failure(candidate);
    candidate->failure = message != NULL ? strdup(message) : NULL;
    report_error(candidate, TELEMETRY_ORACLE_ERROR, function_names[candidate->call_kind], message);
}

/* The verdict that lua/crown/election/contract.lua made of what the oracle returned. */
static void read_verdict(struct candidate *candidate, lua_State *L, int nresults,
                         struct election_event *event)
{
    int first = lua_gettop(L) - nresults + 1;
    const char *verdict = nresults > 0 ? lua_tostring(L, first) : NULL;
    lua_settop(L, first + 5); /* what was not returned reads as nil */
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
        report_failure(candidate, lua_tostring(L, first + 1));
        return;
    }
    if (event->type != ELECTION_EVENT_NOTHING)
        forget_failure(candidate);
}

static void call_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    struct election_event event = {.type = ELECTION_EVENT_UNKNOWN,
                                   .attempt = candidate->call_attempt};
    lua_State *L = task_state(task);
    enum candidate_call kind = candidate->call_kind;
    candidate->call = NULL;
    if (outcome == TASK_FAILED)
        report_error(candidate, TELEMETRY_ORACLE_ERROR, function_names[kind], lua_tostring(L, -1));
    else if (outcome == TASK_DONE && kind != CALL_ABDICATE)
        read_verdict(candidate, L, nresults, &event);
    if (kind == CALL_ABDICATE)
        event.type = ELECTION_EVENT_RELEASED;
    candidate_feed(candidate, &event);
}

/* Takes the oldest message off the ring and pushes it. */
static void push_message(struct candidate *candidate, lua_State *L)
{
    if (candidate->message_count == 0) {
        lua_pushnil(L);
        return;
    }
    int reference = candidate->messages[candidate->message_first];
    candidate->message_first = (candidate->message_first + 1) % candidate->message_room;
    candidate->message_count--;
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    luaL_unref(L, LUA_REGISTRYINDEX, reference);
}

/* Room for one more: the ring grows as it is needed, since ten thousand of the largest would be 40
 * MB.
 * @return how many fit, or 0. */
static unsigned make_room(struct candidate *candidate)
{
    if (candidate->message_count < candidate->message_room)
        return candidate->message_room;
    const unsigned before = candidate->message_room;
    unsigned room = before > 0 ? before * 2 : 4;
    int *ring = room <= CANDIDATE_MAX_MESSAGES ? calloc(room, sizeof(*ring)) : NULL;
    if (ring == NULL)
        return 0;
    for (unsigned i = 0; before > 0 && i < candidate->message_count; i++)
        ring[i] = candidate->messages[(candidate->message_first + i) % before];
    free(candidate->messages);
    candidate->messages = ring;
    candidate->message_first = 0;
    candidate->message_room = room;
    return room;
}

bool candidate_send(struct candidate *candidate, lua_State *L)
{
    unsigned room = candidate->finished ? 0 : make_room(candidate);
    if (room == 0) {
        lua_pop(L, 1);
        return false;
    }
    unsigned last = (candidate->message_first + candidate->message_count) % room;
    candidate->messages[last] = luaL_ref(L, LUA_REGISTRYINDEX);
    candidate->message_count++;
    candidate_feed_type(candidate, ELECTION_EVENT_MESSAGE);
    return true;
}

static void handler_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    (void)nresults;
    if (outcome == TASK_FAILED)
        report_error(candidate, TELEMETRY_HANDLER_ERROR, "campaign",
                     lua_tostring(task_state(task), -1));
}

/* The campaign handler sees each claim and refresh; it neither delays nor decides them. */
static void run_campaign(struct candidate *candidate)
{
    lua_State *L = push_perform(candidate, "campaign");
    lua_pushstring(L, candidate_phase_name(election_look(&candidate->election).phase));
    (void)task_spawn(host_lua(candidate->host), L, 3, &candidate->calls, handler_done, candidate);
}

void calls_oracle(struct candidate *candidate, enum candidate_call kind,
                  const struct election_action *action)
{
    if (candidate->has_campaign && (kind == CALL_CLAIM || kind == CALL_REFRESH))
        run_campaign(candidate);
    lua_State *L = push_perform(candidate, call_names[kind]);
    int nargs = 2;
    if (kind == CALL_INFO) {
        push_message(candidate, L);
        nargs++;
    } else if (kind == CALL_ABDICATE) {
        lua_pushboolean(L, election_look(&candidate->election).ending);
        nargs++;
    }
    candidate->call_kind = kind;
    candidate->call_attempt = action->attempt;
    candidate->call_until_ns = action->until_ns;
    candidate->call =
        task_spawn(host_lua(candidate->host), L, nargs, &candidate->calls, call_done, candidate);
    if (candidate->call == NULL) {
        const struct election_event event = {.type = kind == CALL_ABDICATE ? ELECTION_EVENT_RELEASED
                                                                           : ELECTION_EVENT_UNKNOWN,
                                             .attempt = action->attempt};
        candidate_feed(candidate, &event);
    }
}

void calls_cancel(struct candidate *candidate)
{
    if (candidate->call == NULL)
        return;
    if (loop_now(host_loop(candidate->host)) >=
        candidate->call_until_ns) /* else it is the user who stops us */
        report_error(candidate, TELEMETRY_ORACLE_ERROR, function_names[candidate->call_kind],
                     "no answer in the time allowed");
    task_drop(candidate->call);
    candidate->call = NULL;
}

static void won_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    (void)nresults;
    candidate->won = NULL;
    if (outcome != TASK_FAILED)
        return;
    report_error(candidate, TELEMETRY_HANDLER_ERROR, "won", lua_tostring(task_state(task), -1));
    candidate_feed_type(candidate, ELECTION_EVENT_WON_FAILED);
}

void calls_won(struct candidate *candidate, uint64_t epoch)
{
    task_scope_init(&candidate->term);
    candidate->term.owner = candidate;
    if (!candidate->has_won)
        return;
    lua_State *L = push_perform(candidate, "won");
    lua_pushnumber(L, (lua_Number)epoch);
    candidate->won =
        task_spawn(host_lua(candidate->host), L, 3, &candidate->term, won_done, candidate);
    if (candidate->won == NULL)
        candidate_feed_type(candidate, ELECTION_EVENT_WON_FAILED);
}

static void lost_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    (void)nresults;
    candidate->lost = NULL;
    if (outcome == TASK_FAILED)
        report_error(candidate, TELEMETRY_HANDLER_ERROR, "lost",
                     lua_tostring(task_state(task), -1));
    candidate_feed_type(candidate, ELECTION_EVENT_LOST_DONE);
}

void calls_lost(struct candidate *candidate, enum election_reason reason)
{
    if (!candidate->has_lost) {
        candidate_feed_type(candidate, ELECTION_EVENT_LOST_DONE);
        return;
    }
    lua_State *L = push_perform(candidate, "lost");
    lua_pushstring(L, election_reason_name(reason));
    candidate->lost =
        task_spawn(host_lua(candidate->host), L, 3, &candidate->calls, lost_done, candidate);
    if (candidate->lost == NULL)
        candidate_feed_type(candidate, ELECTION_EVENT_LOST_DONE);
}

void calls_lost_over(struct candidate *candidate)
{
    if (candidate->lost == NULL)
        return;
    report_error(candidate, TELEMETRY_HANDLER_ERROR, "lost",
                 "not done in the time allowed: dropped");
    task_drop(candidate->lost);
    candidate->lost = NULL;
}

void calls_free(struct candidate *candidate)
{
    lua_State *L = lua_vm_state(host_lua(candidate->host));
    task_scope_close(&candidate->calls);
    task_scope_close(&candidate->term);
    candidate->call = NULL;
    candidate->won = NULL;
    candidate->lost = NULL;
    while (candidate->message_count > 0) {
        push_message(candidate, L);
        lua_pop(L, 1);
    }
}

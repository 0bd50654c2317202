/* Carrying out the core's actions: what the runtime is to it. */
#include <stdio.h>

#include "cluster.h"

#define STOPS_WITHIN_NS NS_PER_S

void feed_later(struct world *world, unsigned who, int64_t after, struct election_event event)
{
    plan(world, world->now + after, CORE_EVENT, who)->event = event;
}

void hands_forget(struct candidate *candidate)
{
    candidate->attempt = 0;
    link_forget(candidate);
    candidate->tasks = candidate->closing = candidate->lost = candidate->lost_ending = false;
    watch_begin(&candidate->watch);
    candidate->deadline_ns = TIME_NEVER;
}

static bool execs_left(const struct candidate *candidate, bool of_lost)
{
    for (unsigned i = 0; i < EXECS_MAX; i++)
        if (candidate->execs[i].alive && candidate->execs[i].of_lost == of_lost)
            return true;
    return false;
}

void hands_settle(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    bool child = candidate->child && candidate->leader_child;
    bool blind = world->mutation == MUTATE_EXEC_OUTLIVES;
    if (candidate->closing && ((!child && !execs_left(candidate, false)) || blind)) {
        candidate->closing = false;
        feed_later(world, who, below(world, NS_PER_MS),
                   (struct election_event){.type = ELECTION_EVENT_TERM_GONE});
    }
    if (candidate->lost_ending && !execs_left(candidate, true)) {
        candidate->lost = candidate->lost_ending = false;
        feed_later(world, who, below(world, NS_PER_MS),
                   (struct election_event){.type = ELECTION_EVENT_LOST_DONE});
    }
}

/* `lost` is over; what it started is ended with it. */
void hands_lost_returns(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    if (!candidate->lost)
        return;
    candidate->lost_ending = true;
    host_kill_execs(world, who, true);
    hands_settle(world, who);
}

static void run_won(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->tasks = true;
    candidate->term = ++world->serials;
    while (chance(world, 300))
        host_start_exec(world, who, false);
    if (!chance(world, 10))
        return;
    struct happening *failure = plan(world, world->now + below(world, NS_PER_S), TERM_EVENT, who);
    failure->serial = candidate->term;
    failure->event.type = ELECTION_EVENT_WON_FAILED;
}

static void run_lost(struct world *world, unsigned who, enum election_reason reason)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->lost = true;
    candidate->lost_late = reason == ELECTION_REASON_RUNTIME_DIED ||
                           local_now(world, candidate) >= candidate->deadline_ns;
    candidate->lost_ending = false;
    /* From the kill instant on no command is started: it could not be killed in time. */
    if (chance(world, 200) && local_now(world, candidate) < candidate->kill_at_ns)
        host_start_exec(world, who, true);
    struct happening *end =
        plan(world, world->now + any_delay(world, who, 20 * NS_PER_MS), LOST_RETURNS, who);
    end->serial = candidate->term;
}

static void stop_child(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->stop_told = true;
    candidate->stop_kill_ns = action->kill_at_ns;
    host_watch(world, who);
    if (chance(world, 700)) /* the others ignore the signal */
        plan(world, world->now + any_delay(world, who, STOPS_WITHIN_NS), CHILD_EXIT, who)->serial =
            candidate->child_serial;
    if (world->mutation == MUTATE_RELEASE_FIRST) {
        const struct store_request release = {STORE_RELEASE, who, candidate->claim};
        (void)store_serve(&world->store, &release, world->now);
    }
}

static void set_deadline(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    const struct mutate_clock clock = {.now_ns = local_now(world, candidate),
                                       .sent_ns = candidate->sent_ns,
                                       .foreign_ns = world->now,
                                       .ttl_ns = world->store.ttl_ns};
    candidate->kill_at_ns =
        mutate_instant(world->mutation, &candidate->core, action->kill_at_ns, &clock);
    candidate->deadline_ns =
        mutate_instant(world->mutation, &candidate->core, action->deadline_ns, &clock);
    host_watch(world, who);
}

static void call(struct world *world, unsigned who, const struct election_action *action)
{
    enum election_phase phase = election_look(&world->candidates[who].core).phase;
    bool holds = phase == ELECTION_LEADING || phase == ELECTION_COOLING;
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
        link_send(world, who, STORE_CLAIM, action->attempt);
        break;
    case ELECTION_ACTION_CALL_INFO: /* it looks what has become of the lease */
        link_send(world, who, holds ? STORE_REFRESH : STORE_CLAIM, action->attempt);
        break;
    case ELECTION_ACTION_CALL_REFRESH:
        link_send(world, who, STORE_REFRESH, action->attempt);
        break;
    default:
        link_send(world, who, STORE_RELEASE, action->attempt);
        break;
    }
}

/* A lock belongs to a session, and a release that was given up has closed that. */
static void give_up_call(struct world *world, unsigned who)
{
    struct candidate *candidate = &world->candidates[who];
    candidate->attempt = 0;
    if (candidate->verb != STORE_RELEASE)
        return;
    store_free_lock(&world->store, who);
    link_watch(world);
}

static void carry_out(struct world *world, unsigned who, const struct election_action *action)
{
    struct candidate *candidate = &world->candidates[who];
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
    case ELECTION_ACTION_CALL_INFO:
    case ELECTION_ACTION_CALL_REFRESH:
    case ELECTION_ACTION_CALL_ABDICATE:
        call(world, who, action);
        break;
    case ELECTION_ACTION_CANCEL_CALL:
        give_up_call(world, who);
        break;
    case ELECTION_ACTION_ARM_TIMER:
        candidate->timer_serial++;
        if (action->at_ns != TIME_NEVER)
            plan(world, global_of(candidate, action->at_ns), TIMER, who)->serial =
                candidate->timer_serial;
        break;
    case ELECTION_ACTION_SET_DEADLINE:
        set_deadline(world, who, action);
        break;
    case ELECTION_ACTION_CLEAR_DEADLINE:
        if (world->mutation != MUTATE_ARMED_WHILE_RELEASING)
            candidate->deadline_ns = TIME_NEVER;
        break;
    case ELECTION_ACTION_START_CHILD:
        host_start_child(world, who, action);
        break;
    case ELECTION_ACTION_STOP_CHILD:
        stop_child(world, who, action);
        break;
    case ELECTION_ACTION_CLOSE_TERM:
        candidate->tasks = false;
        candidate->closing = true;
        host_kill_execs(world, who, false);
        hands_settle(world, who);
        break;
    case ELECTION_ACTION_RUN_WON:
        run_won(world, who);
        break;
    case ELECTION_ACTION_RUN_LOST:
        run_lost(world, who, action->reason);
        break;
    case ELECTION_ACTION_CLOSE_LOST:
        hands_lost_returns(world, who);
        break;
    case ELECTION_ACTION_FINISH:
        candidate->finished = true;
        store_free_lock(&world->store, who); /* its session ends with it */
        link_watch(world);
        break;
    default:
        break;
    }
}

static void print_action(const struct world *world, unsigned who,
                         const struct election_action *action)
{
    printf("%12.6f %u   -> %s", clock_seconds_from_ns(world->now), who,
           election_action_name(action->type));
    if (action->type == ELECTION_ACTION_EMIT)
        printf(" %s", election_notice_name(action->notice));
    if (action->reason != ELECTION_REASON_NONE)
        printf(" %s", election_reason_name(action->reason));
    printf(" epoch %llu\n", (unsigned long long)action->epoch);
}

void feed(struct world *world, unsigned who, struct election_event event)
{
    struct candidate *candidate = &world->candidates[who];
    struct election_actions actions;
    if (!candidate->up || candidate->finished)
        return;
    event.at_ns = local_now(world, candidate);
    enum election_phase before = election_look(&candidate->core).phase;
    enum store_verb answered = STORE_NOTHING;
    if (event.attempt != 0 && event.attempt == candidate->attempt) {
        answered = candidate->verb;
        candidate->answered_ns = candidate->sent_ns;
        candidate->attempt = 0;
        if (event.type == ELECTION_EVENT_UNKNOWN && answered == STORE_CLAIM)
            candidate->watch.unsure = world->config.has_abdicate;
    }
    const struct election_event told = event;
    promise_told(world, who, &told);
    mutate_before(world->mutation, &candidate->core, &event);
    election_step(&candidate->core, &event, &actions);
    mutate_after(world->mutation, &candidate->core, event.at_ns);
    world->result.steps++;
    if (world->trace)
        printf("%12.6f %u %s: %s\n", clock_seconds_from_ns(world->now), who,
               election_phase_name(before), election_event_name(event.type));
    for (unsigned i = 0; i < actions.count; i++) {
        if (world->trace)
            print_action(world, who, &actions.item[i]);
        promise_action(world, who, &actions.item[i]);
        carry_out(world, who, &actions.item[i]);
    }
    if (!candidate->finished)
        promise_fed(world, who, &told, before, answered);
}

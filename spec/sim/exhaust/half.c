/* What the runtime, its keeper and its processes do for one candidate's core. */
#include "../../c/election/scenario.h"
#include "world.h"

/* --- what is watched -------------------------------------------------------------------------- */

static bool leads_child(const struct half *half)
{
    return half->child != PROCESS_NONE;
}

bool half_term_exists(const struct half *half)
{
    return half->tasks || half->lost || half->command != PROCESS_NONE || leads_child(half);
}

bool half_acts(const struct half *half)
{
    return half->tasks || (half->lost && !half->lost_late) ||
           (half->command != PROCESS_NONE && half->command != PROCESS_STUCK) ||
           (half->child != PROCESS_NONE && half->child != PROCESS_STUCK);
}

static struct watched look(const struct half *half)
{
    return (struct watched){.core = &half->core,
                            .now_ns = NOW_NS,
                            .in_flight = half->in_flight,
                            .exists = half_term_exists(half),
                            .child = half->child != PROCESS_NONE,
                            .leader_goes_on = half->child == PROCESS_RUNS,
                            .stopped = half->stopped};
}

/* --- what the runtime does for the core ------------------------------------------------------- */

void half_kill(enum process *process)
{
    if (*process == PROCESS_RUNS || *process == PROCESS_STOPPING)
        *process = PROCESS_DYING;
}

void half_crash(struct half *half)
{
    half->up = half->paused = false;
    half->tasks = half->closing = half->lost = half->replied = false;
    half->tell_child_gone = half->tell_term_gone = half->tell_lost_done = false;
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        half->requests[i].current = false;
    half_kill(&half->child);
    half_kill(&half->command);
}

static void drop_call(struct half *half)
{
    half->in_flight = STORE_NOTHING;
    half->replied = false;
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        half->requests[i].current = false;
}

static void send(struct half *half, enum store_verb verb)
{
    drop_call(half);
    if (verb == STORE_CLAIM)
        half->claim++;
    half->in_flight = verb;
    half->sent_ns = NOW_NS;
    unsigned free = 0;
    while (free + 1 < run.bounds.requests && half->requests[free].verb != STORE_NOTHING)
        free++; /* where all are taken the newest is lost */
    half->requests[free] = (struct request){.verb = verb, .current = true, .claim = half->claim};
}

void half_settle_ends(struct half *half)
{
    bool blind = run.bounds.mutation == MUTATE_EXEC_OUTLIVES;
    if (half->closing && half->child == PROCESS_NONE && (half->command == PROCESS_NONE || blind)) {
        half->closing = false;
        half->tell_term_gone = true;
    }
}

void half_lost_returns(struct half *half)
{
    if (!half->lost)
        return;
    half->lost = half->lost_late = false;
    half->tell_lost_done = true;
}

static void set_deadline(struct half *half, const struct election_action *action)
{
    const struct mutate_clock clock = {.now_ns = NOW_NS,
                                       .sent_ns = half->sent_ns,
                                       .foreign_ns = NOW_NS + TTL_NS,
                                       .ttl_ns = TTL_NS};
    half->kill_at_ns = mutate_instant(run.bounds.mutation, &half->core, action->kill_at_ns, &clock);
    half->deadline_ns =
        mutate_instant(run.bounds.mutation, &half->core, action->deadline_ns, &clock);
}

static void stop_child(struct model *model, unsigned who, const struct election_action *action)
{
    struct half *half = &model->halves[who];
    if (half->child == PROCESS_RUNS)
        half->child = PROCESS_STOPPING;
    half->stop_kill_ns = action->kill_at_ns;
    const struct store_request release = {STORE_RELEASE, who, half->claim};
    if (run.bounds.mutation == MUTATE_RELEASE_FIRST)
        (void)store_serve(&model->store, &release, NOW_NS);
}

bool half_leads(const struct half *half)
{
    return half->core.phase == ELECTION_LEADING || half->core.phase == ELECTION_COOLING;
}

static void carry_out(struct model *model, unsigned who, const struct election_action *action)
{
    struct half *half = &model->halves[who];
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
        send(half, STORE_CLAIM);
        break;
    case ELECTION_ACTION_CALL_INFO:
        send(half, half_leads(half) ? STORE_REFRESH : STORE_CLAIM);
        break;
    case ELECTION_ACTION_CALL_REFRESH:
        send(half, STORE_REFRESH);
        break;
    case ELECTION_ACTION_CALL_ABDICATE:
        send(half, STORE_RELEASE);
        break;
    case ELECTION_ACTION_CANCEL_CALL:
        drop_call(half);
        break;
    case ELECTION_ACTION_SET_DEADLINE:
        set_deadline(half, action);
        break;
    case ELECTION_ACTION_CLEAR_DEADLINE:
        if (run.bounds.mutation != MUTATE_ARMED_WHILE_RELEASING)
            half->deadline_ns = TIME_NEVER;
        break;
    case ELECTION_ACTION_START_CHILD:
        half->child = PROCESS_RUNS;
        half->stop_kill_ns = TIME_NEVER;
        break;
    case ELECTION_ACTION_STOP_CHILD:
        stop_child(model, who, action);
        break;
    case ELECTION_ACTION_RUN_WON:
        half->tasks = true;
        half->command = PROCESS_RUNS;
        break;
    case ELECTION_ACTION_CLOSE_TERM:
        half->tasks = false;
        half->closing = true;
        if (half->command == PROCESS_RUNS)
            half->command = PROCESS_STOPPING;
        half_settle_ends(half);
        break;
    case ELECTION_ACTION_RUN_LOST:
        half->lost = true;
        half->lost_late =
            action->reason == ELECTION_REASON_RUNTIME_DIED || NOW_NS >= half->deadline_ns;
        break;
    case ELECTION_ACTION_CLOSE_LOST:
        half_lost_returns(half);
        break;
    case ELECTION_ACTION_FINISH:
        half->finished = true;
        break;
    default:
        break;
    }
}

static const char *begins_term(struct model *model, uint64_t epoch)
{
    bool old = epoch <= model->last_epoch;
    model->last_epoch = epoch;
    return old ? "leads under an epoch that was there before" : NULL;
}

const char *half_feed(struct model *model, unsigned who, struct election_event event, FILE *out)
{
    struct half *half = &model->halves[who];
    struct election_actions actions;
    const char *broken = NULL;
    enum election_phase before = half->core.phase;
    int64_t sent_ns = half->sent_ns;
    bool answers = event.type == ELECTION_EVENT_GRANTED || event.type == ELECTION_EVENT_DENIED ||
                   event.type == ELECTION_EVENT_EVICTED || event.type == ELECTION_EVENT_UNKNOWN ||
                   event.type == ELECTION_EVENT_RELEASED;
    enum store_verb answered = answers ? half->in_flight : STORE_NOTHING;
    event.at_ns = NOW_NS;
    event.attempt = half->core.call.attempt;
    if (answers)
        drop_call(half);
    if (event.type == ELECTION_EVENT_UNKNOWN && answered == STORE_CLAIM)
        half->watch.unsure = true;
    if (out != NULL) {
        (void)fprintf(out, "%c: ", 'a' + (char)who);
        scenario_print_event(out, &event, run.unprinted_ns);
        run.unprinted_ns = 0;
        (void)fputc('\n', out);
    }
    const struct election_event told = event;
    watch_told(&half->watch, &told);
    mutate_before(run.bounds.mutation, &half->core, &event);
    election_step(&half->core, &event, &actions);
    mutate_after(run.bounds.mutation, &half->core, NOW_NS);
    for (unsigned i = 0; i < actions.count && broken == NULL; i++) {
        if (out != NULL)
            scenario_print_action(out, &actions.item[i], NOW_NS);
        const struct watched now = look(half);
        broken = watch_action(&half->watch, &now, &actions.item[i]);
        if (broken == NULL && actions.item[i].type == ELECTION_ACTION_RUN_WON)
            broken = begins_term(model, actions.item[i].epoch);
        carry_out(model, who, &actions.item[i]);
    }
    const struct watched now = look(half);
    if (broken == NULL && !half->finished)
        broken = watch_fed(&half->watch, &now, &told, before, answered, sent_ns);
    if (half->finished)
        half_crash(half);
    return broken;
}

const char *half_feed_type(struct model *model, unsigned who, enum election_event_type type,
                           FILE *out)
{
    return half_feed(model, who, (struct election_event){.type = type}, out);
}

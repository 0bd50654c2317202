#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "../../c/election/scenario.h"
#include "base/clock.h"

#define TTL_NS NS_PER_S
#define STEP_NS (TTL_NS / 10)
#define NOW_NS (1000 * NS_PER_S)
#define EPOCH_BASE 1000
#define CLAIM_BASE 1000
#define BEHIND_MOST 3 /* how far behind the newest an epoch or a number is told apart */
#define LEAD_STEPS 1  /* in which a killed tree is dead */

static struct model_bounds bounds;
static int64_t unprinted_ns; /* time since the last event that was written */

static const char *const move_names[] = {
    "the runtime starts", "the timer fires",   "a request arrives",    "a reply arrives",
    "the child is gone",  "the term is gone",  "lost is over",         "the child's tree dies",
    "a command dies",     "lost returns",      "the runtime resumes",  "time goes on",
    "a request is lost",  "a reply is lost",   "a reply is no answer", "the runtime is killed",
    "the runtime stops",  "a tree cannot die", "the child fails",      "somebody abdicates",
    "the user stops it",  "a message comes",   "somebody is evicted",  "the store forgets",
};

const char *model_move_name(enum move_kind kind)
{
    return move_names[kind];
}

static struct election_config config(void)
{
    struct election_config with = scenario_config();
    with.timing.stop_timeout_ns = 2 * STEP_NS;
    with.retry_ns = 2 * STEP_NS;
    with.call_timeout_ns = bounds.patience * STEP_NS;
    with.lost_timeout_ns = 2 * STEP_NS;
    with.restart_within_ns = 5 * STEP_NS;
    with.restart = ELECTION_RESTART_TEMPORARY;
    with.monitor_leader = bounds.monitor_leader;
    return with;
}

void model_print_options(FILE *out)
{
    const struct election_config mine = config(), usual = scenario_config();
    scenario_print_config(out, &mine, &usual);
}

/* --- one form for what is the same ------------------------------------------------------------ */

static void shift(int64_t *at_ns, int64_t by_ns)
{
    if (*at_ns != TIME_NEVER)
        *at_ns -= by_ns;
}

/* What is past is past, however long since. */
static void clamp(int64_t *at_ns, int64_t least_ns)
{
    if (*at_ns < least_ns)
        *at_ns = least_ns;
}

/* Looked at from step to step, an instant between two is the later one. */
static void round_up(int64_t *at_ns)
{
    if (*at_ns != TIME_NEVER)
        *at_ns = (*at_ns + STEP_NS - 1) / STEP_NS * STEP_NS;
}

#define CORE_INSTANTS(core)                                                                        \
    {                                                                                              \
        &(core)->next_claim_ns, &(core)->claim_not_before_ns, &(core)->refresh_at_ns,              \
            &(core)->stop_at_ns, &(core)->kill_at_ns, &(core)->deadline_ns,                        \
            &(core)->cool_until_ns, &(core)->reclaim_ns, &(core)->lost_until_ns,                   \
            &(core)->child.start_at_ns, &(core)->armed_ns, &(core)->call.until_ns                  \
    }
#define HALF_INSTANTS(half)                                                                        \
    {                                                                                              \
        &(half)->kill_at_ns, &(half)->stop_kill_ns, &(half)->deadline_ns,                          \
            &(half)->watch.stop_at_ns, &(half)->watch.kill_at_ns, &(half)->watch.sit_out_ns,       \
            &(half)->watch.claim_due_ns, &(half)->watch.refresh_due_ns                             \
    }
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static void shift_all(struct model *model, int64_t by_ns)
{
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        struct half *half = &model->halves[who];
        int64_t *of_core[] = CORE_INSTANTS(&half->core);
        int64_t *of_half[] = HALF_INSTANTS(half);
        for (size_t i = 0; i < COUNT(of_core); i++)
            shift(of_core[i], by_ns);
        for (size_t i = 0; i < COUNT(of_half); i++)
            shift(of_half[i], by_ns);
        half->core.call.sent_ns -= by_ns;
        half->sent_ns -= by_ns;
    }
    model->store.ends_ns -= by_ns;
    model->doubted_ns -= by_ns;
}

static uint64_t behind(uint64_t number, uint64_t newest, uint64_t base)
{
    if (number == 0)
        return 0;
    uint64_t by = newest > number ? newest - number : 0;
    return base - (by < BEHIND_MOST ? by : BEHIND_MOST);
}

static void canonical_numbers(struct model *model)
{
    uint64_t newest = model->store.epoch;
    uint64_t owners = model->halves[model->store.owner].claim;
    model->store.claim = model->store.held ? behind(model->store.claim, owners, CLAIM_BASE) : 0;
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        struct half *half = &model->halves[who];
        half->core.epoch = behind(half->core.epoch, newest, EPOCH_BASE);
        half->core.highest_epoch = behind(half->core.highest_epoch, newest, EPOCH_BASE);
        half->reply.epoch = half->replied ? behind(half->reply.epoch, newest, EPOCH_BASE) : 0;
        for (unsigned i = 0; i < MODEL_REQUESTS; i++)
            half->requests[i].claim =
                half->requests[i].verb == STORE_NOTHING
                    ? 0
                    : behind(half->requests[i].claim, half->claim, CLAIM_BASE);
        half->claim = CLAIM_BASE;
    }
    model->last_epoch = behind(model->last_epoch, newest, EPOCH_BASE);
    model->store.epoch = EPOCH_BASE;
}

static void canonical_half(struct half *half)
{
    struct election *core = &half->core;
    int64_t *of_core[] = CORE_INSTANTS(core);
    int64_t *of_half[] = HALF_INSTANTS(half);
    if (!half->up) { /* a runtime that is dead remembers nothing */
        memset(core, 0, sizeof(*core));
        watch_begin(&half->watch);
        half->in_flight = STORE_NOTHING;
    }
    for (size_t i = 0; i < COUNT(of_core); i++)
        clamp(of_core[i], NOW_NS);
    for (size_t i = 0; i < COUNT(of_half); i++)
        clamp(of_half[i], NOW_NS - STEP_NS); /* that it was due before now is seen */
    int64_t *rounded[] = {&core->next_claim_ns, &core->refresh_at_ns, &core->lost_until_ns,
                          &core->armed_ns,      &core->reclaim_ns,    &core->claim_not_before_ns};
    for (size_t i = 0; i < COUNT(rounded); i++)
        round_up(rounded[i]);
    core->since_ns = 0;
    clamp(&core->call.sent_ns, NOW_NS - TTL_NS); /* too old for any use, however old */
    clamp(&half->sent_ns, NOW_NS - TTL_NS);
    core->random.state = 0;
    core->terms = 0;
    core->call.attempt = 1;
    if (core->call.kind == ELECTION_CALL_NONE)
        core->call.sent_ns = core->call.until_ns = 0;
    if (half->in_flight == STORE_NOTHING)
        half->sent_ns = 0;
    if (core->stage == ELECTION_STAGE_NONE) {
        core->reason = core->last_reason = ELECTION_REASON_NONE;
        core->reclaim_ns = 0;
        core->epoch = 0;
        half->watch.stop_at_ns = half->watch.kill_at_ns = TIME_NEVER;
        half->watch.refresh_due_ns = TIME_NEVER;
    }
    if (!half->replied)
        memset(&half->reply, 0, sizeof(half->reply));
    bool runs = half->child != PROCESS_NONE || half->command != PROCESS_NONE;
    if (!runs && !half->tasks && !half->lost && core->stage == ELECTION_STAGE_NONE)
        half->kill_at_ns = half->deadline_ns = TIME_NEVER;
    if (half->child == PROCESS_NONE)
        half->stop_kill_ns = TIME_NEVER;
    if (half->child != PROCESS_DYING)
        half->child_age = 0;
    if (half->command != PROCESS_DYING)
        half->command_age = 0;
}

static void canonical(struct model *model)
{
    if (model->store.ends_ns <= NOW_NS)
        model->store.held = false; /* nobody holds a lease that is over */
    if (!model->store.held) {
        model->store.ends_ns = 0;
        model->store.owner = 0;
        model->store.evict = false;
    }
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++)
        canonical_half(&model->halves[who]);
    clamp(&model->doubted_ns, NOW_NS);
    canonical_numbers(model);
}

void model_begin(struct model *model, const struct model_bounds *with)
{
    bounds = *with;
    unprinted_ns = 0;
    memset(model, 0, sizeof(*model));
    model->faults = bounds.faults;
    model->store.ttl_ns = TTL_NS;
    model->store.epoch = EPOCH_BASE;
    model->last_epoch = EPOCH_BASE;
    model->store.release_by_token = bounds.mutation == MUTATE_RELEASE_BY_TOKEN;
    model->store.claims_unordered = bounds.mutation == MUTATE_CLAIMS_UNORDERED;
    model->store.epoch_reused = bounds.mutation == MUTATE_EPOCH_REUSED;
    canonical(model);
}

void model_mirror(struct model *model)
{
    struct half first = model->halves[0];
    model->halves[0] = model->halves[1];
    model->halves[1] = first;
    if (model->store.held)
        model->store.owner = 1 - model->store.owner;
}

/* --- what is watched -------------------------------------------------------------------------- */

static bool leads_child(const struct half *half)
{
    return half->child != PROCESS_NONE;
}

static bool term_exists(const struct half *half)
{
    return half->tasks || half->lost || half->command != PROCESS_NONE || leads_child(half);
}

static bool acts(const struct half *half)
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
                            .exists = term_exists(half),
                            .child = half->child != PROCESS_NONE,
                            .leader_goes_on = half->child == PROCESS_RUNS,
                            .stopped = half->stopped};
}

/* --- what the runtime does for the core ------------------------------------------------------- */

static void kill_process(enum process *process)
{
    if (*process == PROCESS_RUNS || *process == PROCESS_STOPPING)
        *process = PROCESS_DYING;
}

static void crash(struct half *half)
{
    half->up = half->paused = false;
    half->tasks = half->closing = half->lost = half->replied = false;
    half->tell_child_gone = half->tell_term_gone = half->tell_lost_done = false;
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        half->requests[i].current = false;
    kill_process(&half->child);
    kill_process(&half->command);
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
    while (free + 1 < MODEL_REQUESTS && half->requests[free].verb != STORE_NOTHING)
        free++; /* where all are taken the newest is lost */
    half->requests[free] = (struct request){.verb = verb, .current = true, .claim = half->claim};
}

static void settle_ends(struct half *half)
{
    bool blind = bounds.mutation == MUTATE_EXEC_OUTLIVES;
    if (half->closing && half->child == PROCESS_NONE && (half->command == PROCESS_NONE || blind)) {
        half->closing = false;
        half->tell_term_gone = true;
    }
}

static void lost_returns(struct half *half)
{
    if (!half->lost)
        return;
    half->lost = half->lost_late = false;
    half->tell_lost_done = true;
}

static void set_deadline(struct half *half, const struct election_action *action)
{
    const struct mutate_clock clock = {
        .now_ns = NOW_NS, .sent_ns = half->sent_ns, .foreign_ns = NOW_NS + TTL_NS};
    half->kill_at_ns = mutate_instant(bounds.mutation, &half->core, action->kill_at_ns, &clock);
    half->deadline_ns = mutate_instant(bounds.mutation, &half->core, action->deadline_ns, &clock);
}

static void stop_child(struct model *model, unsigned who, const struct election_action *action)
{
    struct half *half = &model->halves[who];
    if (half->child == PROCESS_RUNS)
        half->child = PROCESS_STOPPING;
    half->stop_kill_ns = action->kill_at_ns;
    const struct store_request release = {STORE_RELEASE, who, half->claim};
    if (bounds.mutation == MUTATE_RELEASE_FIRST)
        (void)store_serve(&model->store, &release, NOW_NS);
}

static bool leads(const struct half *half)
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
        send(half, leads(half) ? STORE_REFRESH : STORE_CLAIM);
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
        if (bounds.mutation != MUTATE_ARMED_WHILE_RELEASING)
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
        settle_ends(half);
        break;
    case ELECTION_ACTION_RUN_LOST:
        half->lost = true;
        half->lost_late =
            action->reason == ELECTION_REASON_RUNTIME_DIED || NOW_NS >= half->deadline_ns;
        break;
    case ELECTION_ACTION_CLOSE_LOST:
        lost_returns(half);
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

static const char *feed(struct model *model, unsigned who, struct election_event event, FILE *out)
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
        scenario_print_event(out, &event, unprinted_ns);
        unprinted_ns = 0;
        (void)fputc('\n', out);
    }
    const struct election_event told = event;
    mutate_before(bounds.mutation, &half->core, &event);
    election_step(&half->core, &event, &actions);
    mutate_after(bounds.mutation, &half->core, NOW_NS);
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
        crash(half);
    return broken;
}

static const char *feed_type(struct model *model, unsigned who, enum election_event_type type,
                             FILE *out)
{
    return feed(model, who, (struct election_event){.type = type}, out);
}

/* --- the moves -------------------------------------------------------------------------------- */

static const char *start(struct model *model, unsigned who, FILE *out)
{
    struct half *half = &model->halves[who];
    const struct election_config with = config();
    if (election_init(&half->core, &with, NULL) < 0)
        abort();
    watch_begin(&half->watch);
    half->up = true;
    half->doubts |= model->doubted_ns > NOW_NS;
    return feed_type(model, who,
                     half->watch.won ? ELECTION_EVENT_START_OWING : ELECTION_EVENT_START, out);
}

static void serve(struct model *model, unsigned who, unsigned which)
{
    struct half *half = &model->halves[who];
    const struct request request = half->requests[which];
    const struct store_request asked = {request.verb, who, request.claim};
    memset(&half->requests[which], 0, sizeof(half->requests[which]));
    struct store_reply reply = store_serve(&model->store, &asked, NOW_NS);
    if (!request.current)
        return;
    half->replied = true;
    half->reply_age = 0;
    half->reply.granted = reply.granted; /* field by field: what lies between them stays clear */
    half->reply.evicted = reply.evicted;
    half->reply.epoch = reply.epoch;
    half->reply.expires_ns = reply.expires_ns;
}

static const char *deliver(struct model *model, unsigned who, bool unknown, FILE *out)
{
    struct half *half = &model->halves[who];
    struct store_reply reply = half->reply;
    struct election_event event = {.type = ELECTION_EVENT_DENIED, .denial.expires_ns = -1};
    if (half->in_flight == STORE_RELEASE)
        return feed_type(model, who, ELECTION_EVENT_RELEASED, out);
    if (unknown)
        return feed_type(model, who, ELECTION_EVENT_UNKNOWN, out);
    if (half->doubts) {
        half->doubts = false;
        event.denial.amnesia = true;
        event.denial.expires_ns = TTL_NS;
        event.denial.epoch = reply.epoch;
    } else if (reply.granted) {
        event.type = ELECTION_EVENT_GRANTED;
        event.grant.ttl_ns = TTL_NS;
        event.grant.refresh_ns = 3 * STEP_NS;
        event.grant.epoch = reply.epoch;
    } else if (reply.evicted) {
        event.type = ELECTION_EVENT_EVICTED;
    } else {
        /* What a lease had left when the store said so. */
        event.denial.expires_ns = reply.expires_ns;
        event.denial.epoch = reply.epoch;
    }
    return feed(model, who, event, out);
}

static const char *child_gone(struct model *model, unsigned who, bool failed, FILE *out)
{
    struct election_event event = {.type = ELECTION_EVENT_CHILD_GONE};
    event.child.failed = failed;
    model->halves[who].tell_child_gone = false;
    return feed(model, who, event, out);
}

static void child_dies(struct half *half)
{
    half->child = PROCESS_NONE;
    half->tell_child_gone = half->up;
    settle_ends(half);
}

static void command_dies(struct half *half)
{
    half->command = PROCESS_NONE;
    settle_ends(half);
}

/* The kernel's timer goes off at the end of the step that it is due in: a runtime that is well has
 * had its turn. */
static const char *deadman(struct half *half)
{
    const char *broken = NULL;
    bool lua = half->tasks || (half->lost && !half->lost_late);
    bool armed = lua || bounds.mutation == MUTATE_ARMED_WHILE_RELEASING;
    if (!half->up || !armed || half->deadline_ns > NOW_NS || bounds.mutation == MUTATE_NO_DEADMAN)
        return NULL;
    if (!half->paused && !term_exists(half))
        broken = "is killed by its own dead-man timer, though it is well";
    crash(half);
    return broken;
}

/* The keeper goes off at the beginning of a step. */
static void keeper(struct half *half)
{
    half->child_age += half->child == PROCESS_DYING;
    half->command_age += half->command == PROCESS_DYING;
    if (bounds.mutation == MUTATE_LAZY_KEEPER)
        return;
    if (half->kill_at_ns <= NOW_NS || half->stop_kill_ns <= NOW_NS)
        kill_process(&half->child);
    if (half->kill_at_ns <= NOW_NS)
        kill_process(&half->command);
}

static void grow_older(struct half *half)
{
    half->reply_age += half->replied && half->reply_age < bounds.delay;
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        half->requests[i].age += half->requests[i].verb != STORE_NOTHING;
}

static const char *step(struct model *model)
{
    const char *broken = NULL;
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        const char *problem = deadman(&model->halves[who]);
        broken = broken != NULL ? broken : problem;
    }
    shift_all(model, STEP_NS);
    unprinted_ns += STEP_NS;
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        keeper(&model->halves[who]);
        grow_older(&model->halves[who]);
    }
    return broken;
}

static void forget(struct model *model)
{
    model->store.held = false;
    model->doubted_ns = NOW_NS + TTL_NS;
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++)
        model->halves[who].doubts = true;
}

static const char *fault(struct model *model, const struct move *move, FILE *out)
{
    struct half *half = &model->halves[move->who];
    model->faults--;
    switch ((enum move_kind)move->kind) {
    case MOVE_LOSE_REQUEST:
        memset(&half->requests[move->which], 0, sizeof(half->requests[move->which]));
        return NULL;
    case MOVE_LOSE_REPLY:
        half->replied = false;
        return NULL;
    case MOVE_UNKNOWN:
        return deliver(model, move->who, true, out);
    case MOVE_CRASH:
        crash(half);
        return NULL;
    case MOVE_PAUSE:
        half->paused = true;
        return NULL;
    case MOVE_STUCK:
        *(move->which == 0 ? &half->child : &half->command) = PROCESS_STUCK;
        return NULL;
    case MOVE_CHILD_FAILS:
        half->child = PROCESS_NONE;
        settle_ends(half);
        return child_gone(model, move->who, true, out);
    case MOVE_ABDICATE:
        return feed_type(model, move->who, ELECTION_EVENT_ABDICATE, out);
    case MOVE_STOP:
        half->stopped = true;
        return feed_type(model, move->who, ELECTION_EVENT_STOP, out);
    case MOVE_MESSAGE:
        return feed_type(model, move->who, ELECTION_EVENT_MESSAGE, out);
    case MOVE_EVICT:
        model->store.evict = true;
        return NULL;
    default:
        forget(model);
        return NULL;
    }
}

static const char *ordinary(struct model *model, const struct move *move, FILE *out)
{
    struct half *half = &model->halves[move->who];
    switch ((enum move_kind)move->kind) {
    case MOVE_START:
        return start(model, move->who, out);
    case MOVE_TIMER:
        return feed_type(model, move->who, ELECTION_EVENT_TIMER, out);
    case MOVE_SERVE:
        serve(model, move->who, move->which);
        return NULL;
    case MOVE_REPLY:
        return deliver(model, move->who, false, out);
    case MOVE_CHILD_GONE:
        return child_gone(model, move->who, false, out);
    case MOVE_TERM_GONE:
        half->tell_term_gone = false;
        return feed_type(model, move->who, ELECTION_EVENT_TERM_GONE, out);
    case MOVE_LOST_DONE:
        half->tell_lost_done = false;
        return feed_type(model, move->who, ELECTION_EVENT_LOST_DONE, out);
    case MOVE_CHILD_DIES:
        child_dies(half);
        return NULL;
    case MOVE_COMMAND_DIES:
        command_dies(half);
        return NULL;
    case MOVE_LOST_RETURNS:
        lost_returns(half);
        return NULL;
    case MOVE_RESUME:
        half->paused = false;
        return NULL;
    default:
        return step(model);
    }
}

const char *model_move(struct model *model, const struct move *move, FILE *out)
{
    const char *broken =
        move->kind >= MOVE_LOSE_REQUEST ? fault(model, move, out) : ordinary(model, move, out);
    if (broken == NULL && acts(&model->halves[0]) && acts(&model->halves[1]))
        broken = "acts while another term acts";
    canonical(model);
    return broken;
}

/* --- which moves there are -------------------------------------------------------------------- */

struct list_of_moves {
    struct move *moves;
    unsigned count;
    bool urgent; /* something has to happen before time goes on */
};

static void add(struct list_of_moves *list, enum move_kind kind, unsigned who, unsigned which)
{
    if (list->count == MODEL_MOVES_MAX)
        abort();
    list->moves[list->count++] = (struct move){(uint8_t)kind, (uint8_t)who, (uint8_t)which};
}

static void add_urgent(struct list_of_moves *list, enum move_kind kind, unsigned who)
{
    add(list, kind, who, 0);
    list->urgent = true;
}

static void moves_of_runtime(const struct half *half, unsigned who, struct list_of_moves *list)
{
    if (half->paused) {
        add(list, MOVE_RESUME, who, 0);
        return;
    }
    if (half->core.armed_ns <= NOW_NS)
        add_urgent(list, MOVE_TIMER, who);
    if (half->tell_child_gone)
        add_urgent(list, MOVE_CHILD_GONE, who);
    if (half->tell_term_gone)
        add_urgent(list, MOVE_TERM_GONE, who);
    if (half->tell_lost_done)
        add_urgent(list, MOVE_LOST_DONE, who);
    if (half->lost)
        add(list, MOVE_LOST_RETURNS, who, 0);
    if (half->replied) {
        add(list, MOVE_REPLY, who, 0);
        list->urgent |= half->reply_age >= bounds.delay;
    }
}

static void moves_of_world(const struct half *half, unsigned who, struct list_of_moves *list)
{
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        if (half->requests[i].verb != STORE_NOTHING) {
            add(list, MOVE_SERVE, who, i);
            list->urgent |= half->requests[i].age >= bounds.delay;
        }
    if (half->child == PROCESS_STOPPING || half->child == PROCESS_DYING ||
        half->child == PROCESS_STUCK)
        add(list, MOVE_CHILD_DIES, who, 0);
    if (half->command == PROCESS_STOPPING || half->command == PROCESS_DYING ||
        half->command == PROCESS_STUCK)
        add(list, MOVE_COMMAND_DIES, who, 0);
    list->urgent |= half->child == PROCESS_DYING && half->child_age >= LEAD_STEPS;
    list->urgent |= half->command == PROCESS_DYING && half->command_age >= LEAD_STEPS;
    if (!half->up && !half->finished && half->child == PROCESS_NONE &&
        half->command == PROCESS_NONE)
        add(list, MOVE_START, who, 0);
}

static void faults_of(const struct half *half, unsigned who, struct list_of_moves *list)
{
    for (unsigned i = 0; i < MODEL_REQUESTS; i++)
        if (half->requests[i].verb != STORE_NOTHING)
            add(list, MOVE_LOSE_REQUEST, who, i);
    if (half->child == PROCESS_DYING)
        add(list, MOVE_STUCK, who, 0);
    if (half->command == PROCESS_DYING)
        add(list, MOVE_STUCK, who, 1);
    if (!half->up || half->finished)
        return;
    add(list, MOVE_CRASH, who, 0);
    if (half->paused)
        return;
    add(list, MOVE_PAUSE, who, 0);
    if (half->replied) {
        add(list, MOVE_LOSE_REPLY, who, 0);
        if (half->in_flight != STORE_RELEASE)
            add(list, MOVE_UNKNOWN, who, 0);
    }
    if (half->child == PROCESS_RUNS)
        add(list, MOVE_CHILD_FAILS, who, 0);
    if (leads(half))
        add(list, MOVE_ABDICATE, who, 0);
    if (!half->stopped)
        add(list, MOVE_STOP, who, 0);
    if (half->core.messages == 0)
        add(list, MOVE_MESSAGE, who, 0);
}

unsigned model_moves(const struct model *model, struct move moves[MODEL_MOVES_MAX])
{
    struct list_of_moves list = {.moves = moves};
    for (unsigned who = 0; who < MODEL_CANDIDATES; who++) {
        const struct half *half = &model->halves[who];
        if (half->up && !half->finished)
            moves_of_runtime(half, who, &list);
        moves_of_world(half, who, &list);
        if (model->faults > 0)
            faults_of(half, who, &list);
    }
    if (model->faults > 0 && model->store.held && !model->store.evict)
        add(&list, MOVE_EVICT, 0, 0);
    if (model->faults > 0 && model->store.held && !model->halves[0].doubts &&
        !model->halves[1].doubts)
        add(&list, MOVE_FORGET, 0, 0);
    if (!list.urgent)
        add(&list, MOVE_STEP, 0, 0);
    return list.count;
}

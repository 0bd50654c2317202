#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "../../c/election/scenario.h"
#include "world.h"

struct exhaust_run run;

static const char *const move_names[] = {
    "the runtime starts",    "the timer fires",   "a request arrives",   "a reply arrives",
    "the child is gone",     "the term is gone",  "lost is over",        "the child's tree dies",
    "a command dies",        "lost returns",      "the runtime resumes", "it may lead again",
    "time goes on",          "a request is lost", "a reply is lost",     "a reply is no answer",
    "the runtime is killed", "the runtime stops", "a tree cannot die",   "the child fails",
    "somebody abdicates",    "it may not lead",   "the user stops it",   "a message comes",
    "somebody is evicted",   "the store forgets", "the store goes back",
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
    with.call_timeout_ns = run.bounds.patience * STEP_NS;
    with.lost_timeout_ns = 2 * STEP_NS;
    with.restart_within_ns = 5 * STEP_NS;
    with.restart = ELECTION_RESTART_TEMPORARY;
    with.monitor_leader = run.bounds.monitor_leader;
    return with;
}

void model_print_options(FILE *out)
{
    const struct election_config mine = config(), usual = scenario_config();
    scenario_print_config(out, &mine, &usual);
}

void model_begin(struct model *model, const struct model_bounds *with)
{
    run = (struct exhaust_run){.bounds = *with};
    memset(model, 0, sizeof(*model));
    model->faults = run.bounds.faults;
    model->store.ttl_ns = TTL_NS;
    model->store.epoch = EPOCH_BASE;
    model->last_epoch = EPOCH_BASE;
    model->store.release_by_token = run.bounds.mutation == MUTATE_RELEASE_BY_TOKEN;
    model->store.claims_unordered = run.bounds.mutation == MUTATE_CLAIMS_UNORDERED;
    model->store.epoch_reused = run.bounds.mutation == MUTATE_EPOCH_REUSED;
    canonical_form(model);
}

static const char *start(struct model *model, unsigned who, FILE *out)
{
    struct half *half = &model->halves[who];
    static struct election_config with; /* the same for all */
    with = config();
    if (election_init(&half->core, &with, NULL, NULL) < 0)
        abort();
    watch_begin(&half->watch);
    half->up = true;
    half->doubts |= model->doubted_ns > NOW_NS;
    return half_feed_type(model, who,
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
        return half_feed_type(model, who, ELECTION_EVENT_RELEASED, out);
    if (unknown)
        return half_feed_type(model, who, ELECTION_EVENT_UNKNOWN, out);
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
    return half_feed(model, who, event, out);
}

static const char *child_gone(struct model *model, unsigned who, bool failed, FILE *out)
{
    struct election_event event = {.type = ELECTION_EVENT_CHILD_GONE};
    event.child.failed = failed;
    model->halves[who].tell_child_gone = false;
    return half_feed(model, who, event, out);
}

static void child_dies(struct half *half)
{
    half->child = PROCESS_NONE;
    half->tell_child_gone = half->up;
    half_settle_ends(half);
}

static void command_dies(struct half *half)
{
    half->command = PROCESS_NONE;
    half_settle_ends(half);
}

/* The kernel's timer goes off at the end of the step that it is due in: a runtime that is well has
 * had its turn. */
static const char *deadman(struct half *half)
{
    const char *broken = NULL;
    bool lua = half->tasks || (half->lost && !half->lost_late);
    bool armed = lua || run.bounds.mutation == MUTATE_ARMED_WHILE_RELEASING;
    if (!half->up || !armed || half->deadline_ns > NOW_NS ||
        run.bounds.mutation == MUTATE_NO_DEADMAN)
        return NULL;
    if (!half->paused && !half_term_exists(half))
        broken = "is killed by its own dead-man timer, though it is well";
    half_crash(half);
    return broken;
}

/* The keeper goes off at the beginning of a step. */
static void keeper(struct half *half)
{
    half->child_age += half->child == PROCESS_DYING;
    half->command_age += half->command == PROCESS_DYING;
    if (run.bounds.mutation == MUTATE_LAZY_KEEPER)
        return;
    if (half->kill_at_ns <= NOW_NS || half->stop_kill_ns <= NOW_NS)
        half_kill(&half->child);
    if (half->kill_at_ns <= NOW_NS)
        half_kill(&half->command);
}

static void grow_older(struct half *half)
{
    half->reply_age += half->replied && half->reply_age < run.bounds.delay;
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
    canonical_shift(model, STEP_NS);
    run.unprinted_ns += STEP_NS;
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

/* By two terms: a claim that is granted and never answered uses one up. */
static void go_back(struct model *model)
{
    model->store.held = false;
    model->store.epoch -= 2;
    model->last_epoch = 0; /* what comes again after the sit-out is allowed */
    model->doubted_ns = NOW_NS + TTL_NS;
}

static const char *rule(struct model *model, unsigned who, enum election_event_type type, FILE *out)
{
    return half_feed(model, who,
                     (struct election_event){.type = type, .bar = ELECTION_BAR_UNHEALTHY}, out);
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
        half_crash(half);
        return NULL;
    case MOVE_PAUSE:
        half->paused = true;
        return NULL;
    case MOVE_STUCK:
        *(move->which == 0 ? &half->child : &half->command) = PROCESS_STUCK;
        return NULL;
    case MOVE_CHILD_FAILS:
        half->child = PROCESS_NONE;
        half_settle_ends(half);
        return child_gone(model, move->who, true, out);
    case MOVE_ABDICATE:
        return half_feed_type(model, move->who, ELECTION_EVENT_ABDICATE, out);
    case MOVE_BAR:
        return rule(model, move->who, ELECTION_EVENT_BARRED, out);
    case MOVE_STOP:
        half->stopped = true;
        return half_feed_type(model, move->who, ELECTION_EVENT_STOP, out);
    case MOVE_MESSAGE:
        return half_feed_type(model, move->who, ELECTION_EVENT_MESSAGE, out);
    case MOVE_EVICT:
        model->store.evict = true;
        return NULL;
    case MOVE_GO_BACK:
        go_back(model);
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
        return half_feed_type(model, move->who, ELECTION_EVENT_TIMER, out);
    case MOVE_SERVE:
        serve(model, move->who, move->which);
        return NULL;
    case MOVE_REPLY:
        return deliver(model, move->who, false, out);
    case MOVE_CHILD_GONE:
        return child_gone(model, move->who, false, out);
    case MOVE_TERM_GONE:
        half->tell_term_gone = false;
        return half_feed_type(model, move->who, ELECTION_EVENT_TERM_GONE, out);
    case MOVE_LOST_DONE:
        half->tell_lost_done = false;
        return half_feed_type(model, move->who, ELECTION_EVENT_LOST_DONE, out);
    case MOVE_CHILD_DIES:
        child_dies(half);
        return NULL;
    case MOVE_COMMAND_DIES:
        command_dies(half);
        return NULL;
    case MOVE_LOST_RETURNS:
        half_lost_returns(half);
        return NULL;
    case MOVE_ALLOW:
        return rule(model, move->who, ELECTION_EVENT_ALLOWED, out);
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
    if (broken == NULL && half_acts(&model->halves[0]) && half_acts(&model->halves[1]))
        broken = "acts while another term acts";
    canonical_form(model);
    return broken;
}

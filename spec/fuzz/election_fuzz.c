/* The core under any order of events with any values: it never breaks off, keeps to the bounds of
 * its actions, and starts nothing of a term whose time is over. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "election/state.h"

/* No runtime lives to see what is armed for later than that. */
#define LATEST_NS (TIME_NEVER / 2)

/* The bytes that are left of an input; zeros behind its end. */
struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *input, size_t size)
{
    uint64_t value = 0;
    size_t have = size < input->left ? size : input->left;
    memcpy(&value, input->at, have);
    input->at += have;
    input->left -= have;
    return value;
}

/* Mostly what is usual, sometimes the least and the most that an oracle can say. */
static int64_t take_ns(struct input *input)
{
    uint64_t value = take(input, 2);
    switch (value % 16) {
    case 0:
        return TIME_NEVER;
    case 1:
        return 1;
    case 2:
        return (int64_t)(take(input, 8) >> 2) + 1;
    default:
        return (int64_t)(value / 16 + 1) * 10 * NS_PER_MS;
    }
}

static struct election_config take_config(struct input *input)
{
    uint64_t flags = take(input, 2);
    return (struct election_config){.claim_delay_ns = flags & 1 ? NS_PER_S : 0,
                                    .retry_ns = NS_PER_S,
                                    .cool_down_ns = flags & 2 ? NS_PER_S : 0,
                                    .call_timeout_ns = 5 * NS_PER_S,
                                    .lost_timeout_ns = 5 * NS_PER_S,
                                    .monitor_leader = (flags & 4) != 0,
                                    .has_child = (flags & 8) != 0,
                                    .has_follower_child = (flags & 16) != 0,
                                    .has_abdicate = (flags & 32) != 0,
                                    .leaves = (flags & 64) != 0,
                                    .restart = (enum election_restart)(flags >> 7 & 3),
                                    .restart_max = (unsigned)(flags >> 9 & 3),
                                    .restart_within_ns = 60 * NS_PER_S,
                                    .restart_backoff_first_ns = 100 * NS_PER_MS,
                                    .restart_backoff_most_ns = 5 * NS_PER_S};
}

static struct election_event take_event(struct input *input, const struct election *election)
{
    uint64_t what = take(input, 1);
    struct election_event event = {.type = (enum election_event_type)(what % ELECTION_EVENT_COUNT),
                                   .attempt = election->call.attempt + (what >= 240)};
    if (event.type == ELECTION_EVENT_GRANTED) {
        event.grant.refresh_ns = take_ns(input);
        event.grant.ttl_ns = take(input, 1) > 64 ? take_ns(input) : 0;
        event.grant.epoch = take(input, 1);
        event.grant.cool_down_ns = take(input, 1) == 1 ? take_ns(input) : 0;
    } else if (event.type == ELECTION_EVENT_DENIED) {
        event.denial.expires_ns = take_ns(input) - 1;
        event.denial.retry_ns = take_ns(input) - 1;
        event.denial.epoch = take(input, 1);
        event.denial.amnesia = take(input, 1) == 1;
    } else if (event.type == ELECTION_EVENT_UNKNOWN) {
        event.unknown.answered = take(input, 1) == 1;
        event.unknown.retry_ns = event.unknown.answered ? take_ns(input) - 1 : 0;
    } else if (event.type == ELECTION_EVENT_BARRED || event.type == ELECTION_EVENT_ALLOWED) {
        event.bar = (enum election_bar)(take(input, 1) % ELECTION_BAR_COUNT);
    } else if (event.type == ELECTION_EVENT_CHILD_GONE) {
        uint64_t how = take(input, 1);
        event.child.failed = (how & 1) != 0;
        event.child.unstartable = (how & 2) != 0;
        event.child.kept = (how & 4) != 0;
    }
    return event;
}

static void require(bool kept)
{
    if (!kept)
        abort();
}

static void check(const struct election *election, const struct election_actions *actions,
                  enum election_phase before, int64_t now)
{
    struct election_view view = election_look(election);
    require(view.phase < ELECTION_PHASE_COUNT);
    require(view.bars == 0 || (view.phase != ELECTION_LEADING && view.phase != ELECTION_COOLING));
    require(!view.acting || view.phase == ELECTION_LEADING);
    require(before != ELECTION_FINISHED || actions->count == 0);
    for (unsigned i = 0; i < actions->count; i++) {
        const struct election_action *action = &actions->item[i];
        require(action->type < ELECTION_ACTION_COUNT);
        if (action->type == ELECTION_ACTION_START_CHILD && action->role == ELECTION_ROLE_LEADER)
            require(now < action->stop_at_ns && action->stop_at_ns <= action->kill_at_ns &&
                    action->kill_at_ns <= action->deadline_ns);
        if (action->type == ELECTION_ACTION_RUN_WON)
            require(now < election->stop_at_ns);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = {bytes, size};
    struct election election;
    uint32_t restarted[ELECTION_MAX_RESTARTS];
    struct election_actions actions;
    struct election_config config = take_config(&input);
    int64_t now = 100 * NS_PER_S;
    if (election_init(&election, &config, restarted, NULL) < 0)
        return 0;
    bool owing = take(&input, 1) % 2 != 0;
    struct election_event first = {
        .type = owing ? ELECTION_EVENT_START_OWING : ELECTION_EVENT_START, .at_ns = now};
    election_step(&election, &first, &actions);
    while (input.left > 0) {
        struct election_event event = take_event(&input, &election);
        enum election_phase before = election_look(&election).phase;
        /* Often the timer that was asked for, else some time. */
        if (event.type == ELECTION_EVENT_TIMER && election.armed_ns != TIME_NEVER)
            now = election.armed_ns > now ? election.armed_ns : now;
        else
            now += (int64_t)take(&input, 1) * 20 * NS_PER_MS;
        if (now > LATEST_NS)
            return 0;
        event.at_ns = now;
        election_step(&election, &event, &actions);
        check(&election, &actions, before, now);
    }
    return 0;
}

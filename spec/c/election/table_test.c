/* Every phase takes every event: nothing that can happen is without an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "election/state.h"
#include "scenario.h"

/* An election brought to a phase by ordinary events. */
static void bring_to(struct election *election, enum election_phase phase)
{
    static struct election_config with;
    static uint32_t restarted[ELECTION_MAX_RESTARTS];
    struct election_actions actions;
    struct crown_error err;
    struct election_event event = {.type = ELECTION_EVENT_START, .at_ns = NS_PER_S};
    with = scenario_config();
    with.has_follower_child = true;
    with.restart_max = 3;
    with.claim_delay_ns = phase == ELECTION_INIT ? NS_PER_S : 0;
    with.cool_down_ns = phase == ELECTION_COOLING ? NS_PER_S : 0;
    assert_int_equal(election_init(election, &with, restarted, &err), 0);
    election_step(election, &event, &actions);
    if (phase == ELECTION_INIT || phase == ELECTION_FOLLOWING)
        return;
    if (phase == ELECTION_FINISHED) {
        event.type = ELECTION_EVENT_STOP;
        election_step(election, &event, &actions);
        event.type = ELECTION_EVENT_CHILD_GONE;
        election_step(election, &event, &actions);
        event = (struct election_event){
            .type = ELECTION_EVENT_RELEASED, .at_ns = NS_PER_S, .attempt = election->call.attempt};
        election_step(election, &event, &actions);
        return;
    }
    event = (struct election_event){.type = ELECTION_EVENT_GRANTED,
                                    .at_ns = NS_PER_S,
                                    .attempt = election->call.attempt,
                                    .grant = {5 * NS_PER_S, 15 * NS_PER_S, 1}};
    election_step(election, &event, &actions);
    event = (struct election_event){.type = ELECTION_EVENT_ABDICATE, .at_ns = NS_PER_S};
    if (phase == ELECTION_STEPPING)
        election_step(election, &event, &actions);
}

static void every_phase_takes_every_event(void **state)
{
    (void)state;
    for (int phase = 0; phase < ELECTION_PHASE_COUNT; phase++)
        for (int type = 0; type < ELECTION_EVENT_COUNT; type++)
            for (int stale = 0; stale < 2; stale++) {
                struct election election;
                struct election_actions actions;
                bring_to(&election, (enum election_phase)phase);
                assert_int_equal(election_look(&election).phase, phase);
                const struct election_event event = {
                    .type = (enum election_event_type)type,
                    .at_ns = 2 * NS_PER_S,
                    .attempt = election.call.attempt + (uint32_t)stale,
                    .grant = {5 * NS_PER_S, 15 * NS_PER_S, 2},
                    .denial = {.expires_ns = NS_PER_S, .epoch = 2},
                };
                election_step(&election, &event, &actions);
                assert_in_range(actions.count, 0, ELECTION_MAX_ACTIONS);
                if (phase == ELECTION_FINISHED)
                    assert_int_equal(actions.count, 0);
            }
}

static void every_word_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < ELECTION_EVENT_COUNT; i++)
        if (i != ELECTION_EVENT_UNKNOWN) /* the one that is called so */
            assert_string_not_equal(election_event_name((enum election_event_type)i), "unknown");
    assert_string_equal(election_phase_name(ELECTION_LEADING), "leading");
    assert_string_equal(election_reason_name(ELECTION_REASON_RUNTIME_DIED), "runtime_died");
    assert_string_equal(election_notice_name(ELECTION_NOTICE_CLAIMED), "leadership.claimed");
    assert_string_equal(election_action_name(ELECTION_ACTION_FINISH), "finish");
    assert_string_equal(election_phase_name(ELECTION_PHASE_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_phase_takes_every_event),
        cmocka_unit_test(every_word_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "scenario.h"

struct story story;

int story_open(void **state)
{
    (void)state;
    story = (struct story){.with = scenario_config()};
    return 0;
}

void story_feed(struct election_event event)
{
    event.at_ns = story.now;
    if (event.attempt == 0)
        event.attempt = story.election.call.attempt;
    election_step(&story.election, &event, &story.actions);
}

void story_feed_type(enum election_event_type type)
{
    story_feed((struct election_event){.type = type});
}

const struct election_action *story_find(enum election_action_type type)
{
    for (unsigned i = 0; i < story.actions.count; i++)
        if (story.actions.item[i].type == type)
            return &story.actions.item[i];
    return NULL;
}

void story_begin(void)
{
    struct crown_error err;
    story.now = 100 * NS_PER_S;
    assert_int_equal(election_init(&story.election, &story.with, story.restarted, &err), 0);
    story_feed_type(ELECTION_EVENT_START);
}

void story_grant(uint64_t epoch)
{
    story_feed((struct election_event){.type = ELECTION_EVENT_GRANTED,
                                       .grant = {STORY_TTL / 3, STORY_TTL, epoch}});
}

void story_lead(void)
{
    story_begin();
    story_grant(1);
    assert_int_equal(election_look(&story.election).phase, ELECTION_LEADING);
}

void story_wait(void)
{
    assert_true(story.election.armed_ns != TIME_NEVER);
    story.now = story.election.armed_ns;
    story_feed_type(ELECTION_EVENT_TIMER);
}

void story_deny(int64_t expires_ns, uint64_t epoch)
{
    story_feed((struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = expires_ns, .epoch = epoch}});
}

void story_refresh(void)
{
    do
        story_wait();
    while (story_find(ELECTION_ACTION_CALL_REFRESH) == NULL);
}

void story_gone(void)
{
    story_feed_type(ELECTION_EVENT_CHILD_GONE);
    story_feed_type(ELECTION_EVENT_TERM_GONE);
}

void story_let_go(void)
{
    story_gone();
    story_feed_type(ELECTION_EVENT_LOST_DONE);
    if (story_find(ELECTION_ACTION_CALL_ABDICATE) != NULL)
        story_feed_type(ELECTION_EVENT_RELEASED);
}

bool story_told(enum election_notice notice)
{
    for (unsigned i = 0; i < story.actions.count; i++)
        if (story.actions.item[i].type == ELECTION_ACTION_EMIT &&
            story.actions.item[i].notice == notice)
            return true;
    return false;
}

#include "story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "scenario.h"

struct election_config story_config(void)
{
    return scenario_config();
}

void story_feed(struct story *story, struct election_event event)
{
    event.at_ns = story->now;
    if (event.attempt == 0)
        event.attempt = story->election.call.attempt;
    election_step(&story->election, &event, &story->actions);
}

void story_feed_type(struct story *story, enum election_event_type type)
{
    story_feed(story, (struct election_event){.type = type});
}

const struct election_action *story_find(const struct story *story, enum election_action_type type)
{
    for (unsigned i = 0; i < story->actions.count; i++)
        if (story->actions.item[i].type == type)
            return &story->actions.item[i];
    return NULL;
}

void story_begin(struct story *story, const struct election_config *with)
{
    struct crown_error err;
    story->now = 100 * NS_PER_S;
    assert_int_equal(election_init(&story->election, with, &err), 0);
    story_feed_type(story, ELECTION_EVENT_START);
}

void story_grant(struct story *story, uint64_t epoch)
{
    story_feed(story, (struct election_event){.type = ELECTION_EVENT_GRANTED,
                                              .grant = {STORY_TTL / 3, STORY_TTL, epoch}});
}

void story_lead(struct story *story, const struct election_config *with)
{
    story_begin(story, with);
    story_grant(story, 1);
    assert_int_equal(election_look(&story->election).phase, ELECTION_LEADING);
}

void story_wait(struct story *story)
{
    assert_true(story->election.armed_ns != TIME_NEVER);
    story->now = story->election.armed_ns;
    story_feed_type(story, ELECTION_EVENT_TIMER);
}

void story_deny(struct story *story, int64_t expires_ns, uint64_t epoch)
{
    story_feed(story,
               (struct election_event){.type = ELECTION_EVENT_DENIED,
                                       .denial = {.expires_ns = expires_ns, .epoch = epoch}});
}

void story_refresh(struct story *story)
{
    do
        story_wait(story);
    while (story_find(story, ELECTION_ACTION_CALL_REFRESH) == NULL);
}

void story_gone(struct story *story)
{
    story_feed_type(story, ELECTION_EVENT_CHILD_GONE);
    story_feed_type(story, ELECTION_EVENT_TERM_GONE);
}

void story_let_go(struct story *story)
{
    story_gone(story);
    story_feed_type(story, ELECTION_EVENT_LOST_DONE);
    if (story_find(story, ELECTION_ACTION_CALL_ABDICATE) != NULL)
        story_feed_type(story, ELECTION_EVENT_RELEASED);
}

bool story_told(const struct story *story, enum election_notice notice)
{
    for (unsigned i = 0; i < story->actions.count; i++)
        if (story->actions.item[i].type == ELECTION_ACTION_EMIT &&
            story->actions.item[i].notice == notice)
            return true;
    return false;
}

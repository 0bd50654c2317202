#include "host/announce.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "candidate/candidate.h"
#include "loop/loop.h"
#include "process/link.h"
#include "process/title.h"
#include "telemetry/notices.h"
#include "telemetry/notify.h"

#define NAMED 3u /* elections by name; of more only how many there are */
#define PAUSE_NS (200 * NS_PER_MS)

/* One runtime a process. */
static struct {
    struct loop_deadline due;
    struct candidate_env *env; /* NULL: nothing is told yet, or any more */
    struct link *link;
    const char *what;
    int64_t told_ns;
} announcement;

struct names {
    char text[300];
    size_t length;
    unsigned count;
};

static void add_name(struct names *names, const char *name)
{
    if (names->count++ < NAMED)
        names->length +=
            (size_t)snprintf(names->text + names->length, sizeof(names->text) - names->length,
                             "%s%.60s", names->length > 0 ? ", " : "", name);
}

struct census {
    unsigned all, led;
    struct names names; /* of all, where they are few */
    struct candidate *last;
};

/* @return whether more names are wanted. */
static bool name_one(struct candidate *candidate, void *context)
{
    struct census *census = context;
    census->last = candidate;
    add_name(&census->names, candidate_name(candidate));
    return census->names.count <= NAMED;
}

static bool name_leading(struct candidate *candidate, void *context)
{
    struct names *led = context;
    struct candidate_status status;
    candidate_status(candidate, &status);
    if (status.view.phase == ELECTION_LEADING)
        add_name(led, candidate_name(candidate));
    return led->count <= NAMED;
}

/* A hundred thousand are not looked at one by one, several times a second. */
static struct census count(const struct candidates *candidates)
{
    struct census census = {.all = candidates_count(candidates),
                            .led = candidates_leading(candidates)};
    candidates_while(candidates, name_one, &census);
    return census;
}

static void tell_manager(const struct census *census)
{
    char text[704];
    struct names led = {.length = 0};
    const char *told = notices_status();
    if (getenv("NOTIFY_SOCKET") == NULL)
        return;
    if (census->led > 0)
        candidates_while(announcement.env->candidates, name_leading, &led);
    (void)snprintf(text, sizeof(text), "STATUS=leads %u of %u elections%s%s%s%s%s", census->led,
                   census->all, led.count > 0 ? ": " : "", led.text, led.count > NAMED ? ", …" : "",
                   told[0] != '\0' ? "; " : "", told);
    notify_send(text);
}

/* "crown-lua run reports [leading, epoch 7]", so that `pgrep -f 'crown-lua run'` finds it. */
static void show_titles(const struct census *census)
{
    struct candidate_status status;
    char state[64], names[320], text[512];
    candidate_status(census->last, &status);
    if (census->all == 1 && census->led == 1)
        (void)snprintf(state, sizeof(state), "leading, epoch %llu",
                       (unsigned long long)status.leader_epoch);
    else if (census->all == 1)
        (void)snprintf(state, sizeof(state), "%s", candidate_phase_name(status.view.phase));
    else
        (void)snprintf(state, sizeof(state), "leads %u of %u", census->led, census->all);
    if (census->all <= NAMED)
        (void)snprintf(names, sizeof(names), "%s", census->names.text);
    else
        (void)snprintf(names, sizeof(names), "%u elections", census->all);
    title_set("crown-runtime", names);
    (void)snprintf(text, sizeof(text), "crown-lua %s %s [%s]", announcement.what, names, state);
    if (link_fd(announcement.link) >= 0)
        link_title(announcement.link, text);
}

static void tell(struct loop_deadline *due)
{
    (void)due;
    announcement.told_ns = loop_now(announcement.env->loop);
    const struct census census = count(announcement.env->candidates);
    if (census.all == 0)
        return;
    tell_manager(&census);
    show_titles(&census);
}

void announce_begin(struct candidate_env *env, struct link *link, const char *what)
{
    announcement.env = env;
    announcement.link = link;
    announcement.what = what;
    announcement.due.fire = tell;
    tell(&announcement.due);
}

void announce_change(struct candidate_env *env)
{
    if (announcement.env == NULL || loop_at_armed(&announcement.due))
        return;
    /* Soon enough for people, and seldom enough where thousands change. */
    loop_at(env->loop, &announcement.due, clock_add_ns(announcement.told_ns, PAUSE_NS));
}

void announce_end(void)
{
    if (announcement.env != NULL)
        loop_at_cancel(announcement.env->loop, &announcement.due);
    announcement.env = NULL;
}

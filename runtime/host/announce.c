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
    struct names all, led;
    struct candidate_status last;
};

static void count_in(struct candidate *candidate, void *context)
{
    struct census *census = context;
    add_name(&census->all, candidate_name(candidate));
    candidate_status(candidate, &census->last);
    if (census->last.view.phase == ELECTION_LEADING)
        add_name(&census->led, candidate_name(candidate));
}

static void tell_manager(const struct census *census)
{
    char text[704];
    const struct names *led = &census->led;
    const char *told = notices_status();
    if (getenv("NOTIFY_SOCKET") == NULL)
        return;
    (void)snprintf(text, sizeof(text), "STATUS=leads %u of %u elections%s%s%s%s%s", led->count,
                   census->all.count, led->count > 0 ? ": " : "", led->text,
                   led->count > NAMED ? ", …" : "", told[0] != '\0' ? "; " : "", told);
    notify_send(text);
}

/* "crown-lua run reports [leading, epoch 7]", so that `pgrep -f 'crown-lua run'` finds it. */
static void show_titles(const struct census *census)
{
    const struct names *all = &census->all;
    char state[64], names[320], text[512];
    if (all->count == 1 && census->led.count == 1)
        (void)snprintf(state, sizeof(state), "leading, epoch %llu",
                       (unsigned long long)census->last.leader_epoch);
    else if (all->count == 1)
        (void)snprintf(state, sizeof(state), "%s", candidate_phase_name(census->last.view.phase));
    else
        (void)snprintf(state, sizeof(state), "leads %u of %u", census->led.count, all->count);
    if (all->count <= NAMED)
        (void)snprintf(names, sizeof(names), "%s", all->text);
    else
        (void)snprintf(names, sizeof(names), "%u elections", all->count);
    title_set("crown-runtime", names);
    (void)snprintf(text, sizeof(text), "crown-lua %s %s [%s]", announcement.what, names, state);
    if (link_fd(announcement.link) >= 0)
        link_title(announcement.link, text);
}

static void tell(struct loop_deadline *due)
{
    struct census census = {.all = {.length = 0}};
    (void)due;
    announcement.told_ns = loop_now(announcement.env->loop);
    candidates_each(announcement.env->candidates, count_in, &census);
    if (census.all.count == 0)
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

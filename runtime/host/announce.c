#include "host/announce.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "candidate/candidate.h"
#include "loop/loop.h"
#include "process/link.h"
#include "process/title.h"
#include "telemetry/notify.h"

struct leading {
    char text[400];
    size_t length;
    unsigned led, all;
};

static void add_led(struct candidate *candidate, void *context)
{
    struct leading *leading = context;
    struct candidate_status status;
    candidate_status(candidate, &status);
    leading->all++;
    if (status.view.phase != ELECTION_LEADING)
        return;
    if (leading->led++ < 3)
        leading->length += (size_t)snprintf(
            leading->text + leading->length, sizeof(leading->text) - leading->length, "%s%.100s",
            leading->length > 0 ? ", " : "", candidate_name(candidate));
}

/* One runtime a process. */
static struct {
    struct loop_job job;
    const struct candidate_env *env;
} announcement;

static void tell_status(struct loop_job *job)
{
    (void)job;
    struct leading leading = {.length = 0};
    char text[512];
    candidates_each(announcement.env->candidates, add_led, &leading);
    (void)snprintf(text, sizeof(text), "STATUS=leads %u of %u elections%s%s%s", leading.led,
                   leading.all, leading.led > 0 ? ": " : "", leading.text,
                   leading.led > 3 ? ", …" : "");
    notify_send(text);
}

void announce_status(struct candidate_env *env)
{
    if (getenv("NOTIFY_SOCKET") == NULL)
        return;
    announcement.env = env;
    announcement.job.run = tell_status;
    loop_post(env->loop, &announcement.job);
}

struct title {
    char text[200];
    size_t length;
    unsigned count;
};

static void add_name(struct candidate *candidate, void *context)
{
    struct title *title = context;
    if (title->count++ < 3)
        title->length +=
            (size_t)snprintf(title->text + title->length, sizeof(title->text) - title->length,
                             "%s%.60s", title->length > 0 ? " " : "", candidate_name(candidate));
}

void announce_title(const struct candidate_env *env, struct link *link)
{
    struct title title = {.length = 0};
    struct crown_error err;
    candidates_each(env->candidates, add_name, &title);
    if (title.count > 3)
        (void)snprintf(title.text, sizeof(title.text), "%u elections", title.count);
    title_set("crown-runtime", title.text);
    if (link_fd(link) >= 0 && link_title(link, title.text, &err) < 0)
        log_debug("%s", err.message);
}

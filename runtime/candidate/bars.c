#include "candidate/bars.h"

#include <stdlib.h>
#include <string.h>

#include "candidate/env.h"
#include "candidate/state.h"

#define HEARS_MOST 16 /* an oracle may send nothing more before its last message was handled */

/* `why` is NULL where the bar is not set. */
struct bars {
    struct {
        char *why;
        int64_t since_ns;
    } of[ELECTION_BAR_COUNT];
};

static struct bars *bars_of(struct candidate *candidate)
{
    if (candidate->bars == NULL)
        candidate->bars = calloc(1, sizeof(*candidate->bars));
    if (candidate->bars == NULL)
        abort(); /* crash-only, as every allocation of a few bytes */
    return candidate->bars;
}

void bars_bar(struct candidate *candidate, enum election_bar bar, const char *why)
{
    struct bars *bars = bars_of(candidate);
    char *words = strdup(why);
    if (words == NULL)
        abort();
    if (bars->of[bar].why == NULL)
        bars->of[bar].since_ns = loop_now(candidate->env->loop);
    free(bars->of[bar].why);
    bars->of[bar].why = words;
    candidate_feed(candidate, &(struct election_event){.type = ELECTION_EVENT_BARRED, .bar = bar});
}

void bars_allow(struct candidate *candidate, enum election_bar bar)
{
    if (bars_why(candidate, bar) == NULL)
        return;
    free(candidate->bars->of[bar].why);
    candidate->bars->of[bar].why = NULL;
    candidate_feed(candidate, &(struct election_event){.type = ELECTION_EVENT_ALLOWED, .bar = bar});
}

void bars_free(struct candidate *candidate)
{
    if (candidate->bars == NULL)
        return;
    for (int bar = 0; bar < ELECTION_BAR_COUNT; bar++)
        free(candidate->bars->of[bar].why);
    free(candidate->bars);
    candidate->bars = NULL;
}

const char *bars_why(const struct candidate *candidate, enum election_bar bar)
{
    return candidate->bars != NULL ? candidate->bars->of[bar].why : NULL;
}

int64_t bars_since(const struct candidate *candidate, enum election_bar bar)
{
    return candidate->bars != NULL ? candidate->bars->of[bar].since_ns : TIME_NEVER;
}

bool bars_heard_enough(const struct candidate *candidate)
{
    struct election_view view = election_look(&candidate->election);
    return view.bars != 0 && candidate->mailbox.count >= HEARS_MOST &&
           (view.phase == ELECTION_INIT || view.phase == ELECTION_FOLLOWING);
}

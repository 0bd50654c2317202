#include "candidate/outage.h"

#include <stdlib.h>
#include <string.h>

#include "candidate/env.h"
#include "candidate/perform.h"
#include "candidate/state.h"
#include "loop/loop.h"

void outage_report(struct candidate *candidate, const char *function, const char *message)
{
    if (candidate->failing_since_ns == TIME_NEVER)
        candidate->failing_since_ns = loop_now(candidate->env->loop);
    if (candidate->failure != NULL && message != NULL && strcmp(candidate->failure, message) == 0)
        return;
    free(candidate->failure);
    candidate->failure = message != NULL ? strdup(message) : NULL;
    perform_failed(candidate, TELEMETRY_ORACLE_ERROR, function, message);
}

void outage_over(struct candidate *candidate)
{
    free(candidate->failure);
    candidate->failure = NULL;
    candidate->failing_since_ns = TIME_NEVER;
    candidate->answered_ns = loop_now(candidate->env->loop);
}

#include "candidate/outage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "candidate/env.h"
#include "candidate/state.h"
#include "loop/loop.h"

#define REASONS_MOST 16 /* that vary from one to the next have been told often enough by then */

struct outage_reasons {
    unsigned count;
    char *told[REASONS_MOST];
};

static bool was_told(const struct outage_reasons *reasons, const char *message)
{
    for (unsigned i = 0; i < reasons->count; i++) {
        if (strcmp(reasons->told[i], message) == 0)
            return true;
    }
    return reasons->count == REASONS_MOST;
}

/* @return whether this outage was told with it; what memory cannot keep is told again. */
static bool note(struct candidate *candidate, const char *message)
{
    if (candidate->reasons == NULL)
        candidate->reasons = calloc(1, sizeof(*candidate->reasons));
    struct outage_reasons *reasons = candidate->reasons;
    if (reasons == NULL)
        return false;
    if (was_told(reasons, message))
        return true;
    char *copy = strdup(message);
    if (copy != NULL)
        reasons->told[reasons->count++] = copy;
    return false;
}

static void tell(struct candidate *candidate, const char *function, const char *message,
                 const char *code)
{
    const struct log_field fields[] = {log_string("function", function),
                                       log_string("error", message), log_string("fault", "usage")};
    bool users = code != NULL && strcmp(code, "usage") == 0; /* same (order): it is symmetric */
    telemetry_emit(candidate->env->telemetry, &candidate->source, TELEMETRY_ORACLE_ERROR, fields,
                   users ? 3 : 2);
}

void outage_report(struct candidate *candidate, const char *function, const char *message,
                   const char *code)
{
    const char *reason = message != NULL ? message : "(no message)";
    candidate->answers = code != NULL && strcmp(code, "store") == 0;
    if (candidate->failing_since_ns == TIME_NEVER)
        candidate->failing_since_ns = loop_now(candidate->env->loop);
    if (candidate->failure != NULL && strcmp(candidate->failure, reason) == 0)
        return;
    free(candidate->failure);
    candidate->failure = strdup(reason);
    if (!note(candidate, reason))
        tell(candidate, function, reason, code);
}

void outage_forget(struct candidate *candidate)
{
    struct outage_reasons *reasons = candidate->reasons;
    for (unsigned i = 0; reasons != NULL && i < reasons->count; i++)
        free(reasons->told[i]);
    free(reasons);
    candidate->reasons = NULL;
    free(candidate->failure);
    candidate->failure = NULL;
    candidate->answers = false;
}

void outage_over(struct candidate *candidate)
{
    outage_forget(candidate);
    candidate->failing_since_ns = TIME_NEVER;
    candidate->answered_ns = loop_now(candidate->env->loop);
}
